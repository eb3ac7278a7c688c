#include "taper/exporter/optim/rare/lowbit.h"

#include <algorithm>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/optim/arithmetic.h"

namespace taper::optim {
namespace internal {

struct Codebook {
  int64_t block;
  bool two_a_byte;
  double greatest;    ///< the table's entry that a block's greatest magnitude becomes
  Tensor decoded;     ///< f32 (256, elements a byte): what a byte stands for
  Tensor boundaries;  ///< f32: a value belongs to the entry behind the last one that it reaches
  Tensor codes;       ///< i64: the code of each entry, in ascending order of the entries
};

}  // namespace internal

namespace {

using internal::Codebook;
using internal::LowBitMean;

/// Entries that grow like floats whose exponent takes as many bits as it needs: with exponent -i
/// come the midpoints of 2^(bits left) equal parts of [0.1, 1], times 10^-i.
std::vector<float> dynamic_table(bool is_signed, int bits) {
  const int exponents = bits - 1;
  std::vector<float> table{0, 1};
  for (int e = 0; e < exponents; ++e) {
    const int parts = 1 << (is_signed ? e : e + 1);
    const double scale = std::pow(10.0, e - exponents + 1);
    for (int i = 0; i < parts; ++i) {
      const float entry = static_cast<float>(scale * (0.1 + 0.9 * (i + 0.5) / parts));
      table.push_back(entry);
      if (is_signed) table.push_back(-entry);
    }
  }
  std::sort(table.begin(), table.end());
  return table;
}

/// The value of a float8 e4m3 byte (no infinities; exponent bias 7).
float value_of_fp8(int byte) {
  const int exponent = byte >> 3 & 15, fraction = byte & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return static_cast<float>(byte & 128 ? -magnitude : magnitude);
}

struct Entry {
  float value;
  int64_t code;
};

std::shared_ptr<const Codebook> make_book(StateFormat format, bool is_signed) {
  std::vector<Entry> entries;
  std::vector<float> decoded(format == StateFormat::four_bit ? 512 : 256);
  auto book = std::make_shared<Codebook>();
  book->block = format == StateFormat::four_bit ? 128 : 256;
  book->two_a_byte = format == StateFormat::four_bit;
  book->greatest = 1;
  if (format == StateFormat::fp8) {
    book->greatest = 448;
    for (int code = 255; code >= 128; --code)
      if (code != 255) entries.push_back({value_of_fp8(code), code});  // 0x7f and 0xff are NaN
    for (int code = 0; code < 127; ++code) entries.push_back({value_of_fp8(code), code});
    for (const Entry& e : entries) decoded[static_cast<size_t>(e.code)] = e.value;
  } else if (format == StateFormat::eight_bit) {
    const std::vector<float> table = dynamic_table(is_signed, 8);
    for (size_t i = 0; i < table.size(); ++i)
      entries.push_back({table[i], static_cast<int64_t>(i)}), decoded[i] = table[i];
  } else {
    std::vector<float> table(16);
    for (size_t i = 0; i < 16; ++i) table[i] = static_cast<float>(i + 1) / 16;
    if (is_signed) table = dynamic_table(true, 4);
    for (size_t i = 0; i < 16; ++i) entries.push_back({table[i], static_cast<int64_t>(i)});
    for (size_t byte = 0; byte < 256; ++byte)
      decoded[2 * byte] = table[byte >> 4], decoded[2 * byte + 1] = table[byte & 15];
  }
  std::vector<float> boundaries;
  std::vector<int64_t> codes{entries[0].code};
  for (size_t i = 1; i < entries.size(); ++i) {
    const float below = entries[i - 1].value, half = (entries[i].value - below) * 0.5f;
    float boundary = below + half;
    // In the middle a float goes to the even code, an entry of a table up.
    if (format == StateFormat::fp8 && entries[i - 1].code % 2 == 0 && half != 0)
      boundary = std::nextafter(boundary, std::numeric_limits<float>::infinity());
    boundaries.push_back(boundary);
    codes.push_back(entries[i].code);
  }
  const auto count = [](const auto& v) { return static_cast<int64_t>(v.size()); };
  book->decoded = Tensor::from(decoded, {256, count(decoded) / 256});
  book->boundaries = Tensor::from(boundaries, {count(boundaries)});
  book->codes = Tensor::from(codes, {count(codes)});
  return book;
}

Tensor decode(const LowBitMean& m, const Tensor& like) {
  if (m.plain.defined()) return m.plain;
  const Tensor values = eager::index_select(m.book->decoded, 0, m.codes.to(DType::i64))
                            .reshape({m.scale.size(0), Dim(m.book->block)});
  return (values * m.scale.unsqueeze(1)).reshape(like.sizes());
}

void encode(LowBitMean& m, const Tensor& value) {
  if (m.plain.defined()) {
    m.plain.copy_(value);
    return;
  }
  const Codebook& book = *m.book;
  const Tensor blocks = value.reshape({m.scale.size(0), Dim(book.block)});
  const Tensor scale =
      eager::clamp_min(eager::amax(eager::abs(blocks), {1}), 1e-12) / book.greatest;
  const Tensor entry =
      eager::bucketize(blocks / scale.unsqueeze(1), book.boundaries, /*right=*/true);
  Tensor codes = eager::index_select(book.codes, 0, entry.reshape({entry.numel()}));
  if (book.two_a_byte) {
    const Tensor pairs = codes.reshape({m.codes.size(0), Dim(2)});
    codes = pairs.select(1, 0) * 16 + pairs.select(1, 1);
  }
  m.codes.copy_(codes.to(DType::u8));
  m.scale.copy_(scale);
}

}  // namespace

internal::LowBitMean LowBitAdam::make_mean(const std::string& kind, const Tensor& parameter,
                                           StateFormat format, bool is_signed) {
  LowBitMean mean;
  auto& book = books_[{format, is_signed}];
  if (!book) book = make_book(format, is_signed);
  mean.book = book;
  const int64_t count = parameter.numel().value(), block = mean.book->block;
  if (count < 4096 || count % block != 0) {
    mean.plain = make_state(kind, parameter, eager::zeros(parameter.sizes(), DType::f32));
    return mean;
  }
  const Dim bytes(mean.book->two_a_byte ? count / 2 : count);
  mean.codes = make_state(kind + ".codes", parameter, eager::zeros({bytes}, DType::u8));
  mean.scale =
      make_state(kind + ".scale", parameter, eager::zeros({Dim(count / block)}, DType::f32));
  return mean;
}

LowBitAdam::LowBitAdam(const std::vector<ParameterGroup<LowBitAdamOptions>>& groups, Location here)
    : WithBetas({"LowBitAdam", here}) {
  count_steps();
  add_groups(groups, [&](const Tensor& p, const LowBitAdamOptions& o) {
    check().not_negative({{"eps", o.eps}, {"weight_decay", o.weight_decay}});
    check().betas(o.betas);
    return internal::LowBitMoments{make_mean("exp_avg", p, o.format, true),
                                   make_mean("exp_avg_sq", p, o.format, false)};
  });
}

void LowBitAdam::update(size_t group, size_t index, Tensor parameter, const Tensor& gradient) {
  const LowBitAdamOptions& o = options(group);
  const Tensor& lr = lr_tensor(group);
  internal::LowBitMoments& m = state(group, index);
  const Tensor g =
      decayed(gradient, false, parameter, o.decoupled_weight_decay ? 0 : o.weight_decay)
          .to(DType::f32);
  if (o.decoupled_weight_decay) shrink(parameter, lr, o.weight_decay);
  const auto averaged = [&](const LowBitMean& mean, double keep, const Tensor& value) {
    return eager::add(decode(mean, parameter) * keep, value, 1 - keep);
  };
  const Tensor mean = averaged(m.mean, o.betas.first, g),
               square = averaged(m.square, o.betas.second, g * g);
  encode(m.mean, mean);
  encode(m.square, square);
  const Tensor rate = lr / one_minus_power(o.betas.first, step_count()),
               root = eager::sqrt(one_minus_power(o.betas.second, step_count()));
  const Tensor denominator = eager::sqrt(square) / root + o.eps;
  parameter.sub_((mean / denominator * rate).to(parameter.dtype()));
}

}  // namespace taper::optim
