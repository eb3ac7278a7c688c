// Mistakes, and the messages that they get.
#pragma once
#include <gmock/gmock.h>

#include "taper/exporter/base/error.h"

#define TAPER_EXPECT_ERROR(Error, call, text) \
  EXPECT_THAT([&] { call; }, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(text)))
/// Expects that the call of an eager function throws an EagerError whose message contains the text.
#define EXPECT_THROW_MESSAGE(call, text) TAPER_EXPECT_ERROR(::taper::EagerError, call, text)
/// The same of what else the host side refuses: an ExportError.
#define EXPECT_EXPORT_ERROR(call, text) TAPER_EXPECT_ERROR(::taper::ExportError, call, text)
