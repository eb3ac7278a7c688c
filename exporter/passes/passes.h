// Passes over ir::Graph, each in its own file, and the order in which an export runs them.
#pragma once
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/target/kernel_table.h"

namespace taper::passes {

/// What a pass did with a node, or why it left the node as it was.
struct Note {
  bool declined;
  std::string node;  ///< "convolution at net.py:14 (conv1)"
  std::string text;  ///< "its weight is no constant"
};

/// What a pass may use besides the graph. It also collects the notes of passes.
class PassContext {
 public:
  /// `dtype`: f16 or bf16, if the program is to hold its weights in halves.
  explicit PassContext(const Target& target = {}, bool exact = true,
                       std::optional<DType> dtype = {})
      : target(target), kernels(target), exact(exact), dtype(dtype) {}

  const Target target;
  const target::KernelTable kernels;  ///< of the target
  const bool exact;                   ///< only passes that keep every bit run
  const std::optional<DType> dtype;

  /// Puts nodes together that a backend takes only as a whole, before operators are taken apart. It
  /// returns how many groups there are. Empty: all runs by kernels.
  std::function<int(ir::Graph&)> group;
  /// Hands parts of a graph to a backend, after operators were taken apart and before kernels
  /// decide about the rest. It returns how many parts there are. Empty: all runs by kernels.
  std::function<int(ir::Graph&)> delegate;

  void did(const ir::Node& node, std::string what) { note(node, false, std::move(what)); }
  void declined(const ir::Node& node, std::string why) { note(node, true, std::move(why)); }
  /// The notes since the last call.
  std::vector<Note> take_notes() { return std::exchange(notes_, {}); }

 private:
  void note(const ir::Node& node, bool declined, std::string text) {
    notes_.push_back({declined, ir::describe(node), std::move(text)});
  }
  std::vector<Note> notes_;
};

// Each pass edits the graph and returns how many nodes it removed or replaced; 0: nothing to do.

/// Removes nodes whose results nobody uses, and unused constants. Checks stay.
int remove_dead_code(ir::Graph& graph, PassContext& context);

/// Makes a `taper::block_embedding` or a `taper::block_linear` of each embedding and linear whose
/// weight is a constant in blocks (Layout), and a `taper::grouped_block_linear` of each product of
/// experts with such weights. A product that reads it the other way round, as
/// gradients do, widens it in each call. Other readers get a constant that is f32. Exact, but if
/// the context is not exact, products become their `_q8`, which round the input.
int read_blocks(ir::Graph& graph, PassContext& context);

/// Makes integer operators of what stands between dequantize and quantize: `taper::conv2d_q8` (of
/// transposed convolutions, too), `linear_q8`, `bmm_q8`, `add_q8`, `sub_q8`, `mul_q8`,
/// `avg_pool2d_q8`, `upsample_bilinear2d_q8`, `softmax_q8`, and tables of functions of one value
/// (`lookup_q8`). Relu and other clamps become the range of the operator before them. Views, `cat`,
/// padding, max pooling and nearest neighbours move the integers. Weights become panels, and images
/// get their channels last. Approximate: the bias is rounded, so a result may be one step beside
/// that of f32.
int fuse_quantized(ir::Graph& graph, PassContext& context);

/// Computes nodes whose arguments are all constants, with eager's kernels. So the bits are those of
/// the program. A node whose result is much larger than its arguments stays, and so does one that
/// widens a weight (read_stored_halves).
int fold_constants(ir::Graph& graph, PassContext& context);

/// Keeps one of several calls of the same operator on the same arguments. This holds for all
/// operators, because random numbers are functions of a state. Look-ups of rows in blocks stay:
/// kept rows would take more memory than the weight.
int merge_common_subexpressions(ir::Graph& graph, PassContext& context);

/// Makes a `max_pool2d` of each max_pool2d_with_indices whose indices nobody uses, where the target
/// has a kernel for that. Exact: both give the same values.
int drop_unused_results(ir::Graph& graph, PassContext& context);

/// Rewrites conv → batch norm (inference, constants) as one convolution: w' = w * g / sqrt(var +
/// eps) and b' = (b - mean) * g / sqrt(var + eps) + beta, computed in double. Approximate, because
/// it rounds in another order.
int fold_batch_norm(ir::Graph& graph, PassContext& context);

/// Makes one `_fused_rms_norm` of x / sqrt(mean(x²) + eps), times a vector of weights or not.
/// Exact: the kernel adds in the order of `mean`.
int fuse_rms_norm(ir::Graph& graph, PassContext& context);

/// Makes one `taper::rotary_embedding` of x * cos + turned(x) * sin, where halves or neighbours
/// (a, b) of the last dimension became (-b, a). Exact: each element is computed in the same way.
int fuse_rotary_embedding(ir::Graph& graph, PassContext& context);

/// Makes one `scaled_dot_product_attention` of softmax(scale * query keyᵀ + masks) value. Masks
/// may be added, or hide scores by `masked_fill` or `where`. Approximate, because the sums are
/// other ones. A query without any key gets zeros, and not NaN.
int fuse_attention(ir::Graph& graph, PassContext& context);

/// Attention needs no mask if the mask follows from constants and hides later keys, or nothing: it
/// is causal, or sees all. Approximate: hidden keys and values are not read, not even if they are
/// NaN.
int constant_masks(ir::Graph& graph, PassContext& context);

/// Attention whose keys and values are repeated for several heads of the query reads them
/// unrepeated (`enable_gqa`). Exact: each query gets the same numbers.
int group_heads(ir::Graph& graph, PassContext& context);

/// Makes a `taper::attention` of a `scaled_dot_product_attention` whose result is copied with its
/// heads last. Exact: the same numbers go to their place at once.
int heads_last(ir::Graph& graph, PassContext& context);

/// Brings convolutions of two spatial dimensions over constant f32 weights, and the pools, `cat`s
/// and pointwise operators between them, into the form with channels last (`taper::convolution`).
/// `permute` views stand at the borders. A graph stays as it is if too many images would have to be
/// copied there. Exact: each sum keeps its order.
int channels_last(ir::Graph& graph, PassContext& context);

/// Replaces trees of f32 pointwise operators over equal sizes by one `taper::pointwise`
/// (kernels/pointwise_program.h), so that intermediate results never go to memory. A tree behind a
/// `taper::convolution` becomes its program. Exact: every element goes through the same functions.
int fuse_pointwise(ir::Graph& graph, PassContext& context);

/// Makes a `taper::winograd_convolution` of a `taper::convolution` with filters of 3 x 3 and stride
/// 1, where that is faster. Approximate, because the sums are other ones.
int winograd(ir::Graph& graph, PassContext& context);

/// A product whose f32 weight is a widened constant of f16 or bf16 reads the constant as it is
/// stored, where its kernel can (Layout). Rows that are looked up are widened one by one. Exact for
/// f16. Beside bf16 some processors round the other operand, so exact exports widen such weights.
int read_stored_halves(ir::Graph& graph, PassContext& context);

/// Stores large f32 weights in the dtype of `context`, which is f16 or bf16. Values between nodes
/// stay f32. A kernel that reads halves gets the weight as it is (Layout). Rows that are looked up
/// are widened one by one. Other products widen the whole weight in each call. Weights that no
/// product and no lookup reads stay f32. Approximate, because weights are rounded: a finite number
/// that does not fit becomes the largest one that does. Throws ExportError if the graph trains
/// weights.
int halve_weights(ir::Graph& graph, PassContext& context);

/// Calls `context.group` for the graph of a method. The bits stay: the nodes move into bodies.
int group_for_backend(ir::Graph& graph, PassContext& context);

/// Calls `context.delegate` for the graph of a method. Approximate, because a backend rounds in its
/// own way.
int delegate(ir::Graph& graph, PassContext& context);

/// Takes apart the operators that the target has no kernel for. Each becomes the operators of its
/// decomposition, and so do these. Exact, because eager computes such an operator by the same
/// parts.
int decompose(ir::Graph& graph, PassContext& context);

struct Pass {
  enum class Runs : uint8_t {
    always,        ///< exact: keeps every result's bits
    unless_exact,  ///< approximate
    for_dtype,     ///< approximate, in exports that ask for a dtype
    for_backend,   ///< approximate, in exports that ask for a backend
  };
  const char* name;
  Runs runs;
  int (*run)(ir::Graph& graph, PassContext& context);
};

/// The passes of an export, in this order.
const std::vector<Pass>& all_passes();
/// The names of the passes, each once.
std::vector<std::string> pass_names();

struct PassResult {
  std::string name;
  int changes = 0;
  std::vector<Note> notes;
};
/// Prints "after fold_batch_norm: 3 changes" and a line for each note. Each line begins with '#'.
std::ostream& operator<<(std::ostream& out, const PassResult& result);

/// Runs the passes that `context` asks for over a graph and its bodies. `after` gets the graph
/// after each pass. Debug builds also verify it.
using AfterPass = std::function<void(const PassResult&, const ir::Graph&)>;
std::vector<PassResult> run_passes(ir::Graph& graph, PassContext& context,
                                   const AfterPass& after = {});

}  // namespace taper::passes
