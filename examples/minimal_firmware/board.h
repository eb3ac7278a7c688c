// The little that this program asks of the machine that it runs on.
#pragma once

/// Shows a text.
void print(const char* text);
