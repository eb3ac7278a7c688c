/// A file that holds a conversation: what a sequence has read, and its caches. Numbers are
/// little-endian.
///
///   64 bytes   SessionHeader
///   i32        the tokens
///   bytes      a note of the application, such as the messages of a chat
///   bytes      what each run of the caches holds of these tokens (row_caches.h)
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "taper/runtime/core/result.h"
#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/llm/tokenizer.h"
#include "taper/runtime/extension/module/mapped_file.h"
#include "taper/runtime/program/program.h"

namespace taper::llm {

class RowCaches;

struct SessionHeader {
  char magic[8];
  uint64_t version;
  uint64_t program;  ///< `identity_of` the program that wrote the caches
  uint64_t tokens, note_bytes, cache_bytes;
  uint64_t checksum;  ///< of all that follows
  uint64_t reserved;  ///< 0
};
static_assert(sizeof(SessionHeader) == 64);

/// Tells programs apart whose caches hold other numbers: by weights, states and the adapter. How
/// many texts and tokens the caches have room for does not count.
uint64_t identity_of(const Program& program, const std::string& adapter);

/// A file that was opened and checked, all but what a program must know.
struct SessionFile {
  MappedFile file;
  uint64_t program = 0;
  Span<const TokenId> tokens;
  std::string_view note;
  Span<const std::byte> caches;
};

/// Errors: invalid_argument, with a message that begins with the path.
Result<SessionFile> open_session_file(const std::string& path, std::string& why);
/// Begins to write the file and ends at once. "": that went well. Else a message that begins with
/// the path.
std::string why_not_writable(const std::string& path);
/// Writes all of the file or nothing. A new file is for its owner only; one that is there keeps its
/// mode, and a symbolic link its target. Errors: invalid_argument, if it cannot be written.
Error write_session_file(const std::string& path, uint64_t program, Span<const TokenId> tokens,
                         std::string_view note, const RowCaches& caches, std::string& why);

}  // namespace taper::llm
