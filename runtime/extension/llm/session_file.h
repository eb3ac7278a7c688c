/// A file that holds a conversation: what a sequence has read, and its caches. Numbers are
/// little-endian.
///
///   80 bytes   SessionHeader
///   i32        the tokens
///   bytes      the name of the adapter that read them; none: the model itself
///   bytes      a note of the application, such as the messages of a chat
///   bytes      what each run of the caches holds of these tokens (row_caches.h), in the order of
///              the names of the states
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "taper/runtime/core/result.h"
#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/llm/tokenizer.h"
#include "taper/runtime/extension/module/file_lock.h"
#include "taper/runtime/extension/module/mapped_file.h"

namespace taper::llm {

class RowCaches;

struct SessionHeader {
  char magic[8];
  uint64_t version;
  uint64_t model;    ///< `identity_of` the model that wrote the caches
  uint64_t adapter;  ///< `identity_of_adapter`; 0: none
  uint64_t tokens, name_bytes, note_bytes, cache_bytes;
  uint64_t checksum;  ///< of all that follows
  uint64_t reserved;  ///< 0
};
static_assert(sizeof(SessionHeader) == 80);

/// Whose caches a file holds.
struct SessionOwner {
  uint64_t model = 0, adapter = 0;  ///< as in SessionHeader
  std::string_view adapter_name;
};

/// A file that was opened and checked, all but what a program must know.
struct SessionFile {
  MappedFile file;
  SessionOwner owner;
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
Error write_session_file(const std::string& path, const SessionOwner& owner,
                         Span<const TokenId> tokens, std::string_view note, const RowCaches& caches,
                         std::string& why);
/// Keeps others from writing the file while the lock is held. Whoever restores a session and saves
/// it later needs that, or the last one who saves wins. False: somebody has the lock; the message
/// begins with the path.
bool lock_session_file(const std::string& path, FileLock& lock, std::string& why);

}  // namespace taper::llm
