#include <cstdio>

#include "board.h"

void print(const char* text) { std::fputs(text, stdout); }
