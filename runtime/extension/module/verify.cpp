#include "taper/runtime/extension/module/verify.h"

#include "taper/schema/program_generated.h"

namespace taper {
namespace {

const char* name_of(format::SegmentKind kind) {
  switch (kind) {
    case format::SegmentKind::constants:
      return "the weights";
    case format::SegmentKind::delegate:
      return "the code of a delegate";
    case format::SegmentKind::assets:
      return "the stored tests";
    case format::SegmentKind::debug:
      return "the debug table";
    case format::SegmentKind::extras:
      return "the table of tests";
  }
  return "a part";
}

}  // namespace

Error verify(const Program& program, std::string& why) {
  ErrorInfo info;
  const Error e = program.verify_segments(&info);
  if (e == Error::ok) return e;
  const format::Segment& damaged =
      *program.table().segments()->Get(static_cast<uint32_t>(info.values[0]));
  why = std::string("the checksum of ") + name_of(damaged.kind()) + " (" +
        std::to_string(damaged.size_bytes()) + " bytes from byte " +
        std::to_string(damaged.offset()) +
        ") is wrong: the file is damaged; copy it again from where it was made, or export it again";
  return e;
}

}  // namespace taper
