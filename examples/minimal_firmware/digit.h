// A handwritten digit, 28 x 28, drawn with one character a pixel: the darker, the more ink.
#pragma once

inline constexpr int digit_size = 28;

inline constexpr char digit[digit_size][digit_size + 1] = {
    "                            ", "                            ", "                            ",
    "                            ", "                            ", "                            ",
    "                            ", "      -#*+:.                ", "      %@@@@@########*:      ",
    "      :=-=*%@%@@@@%@@+      ", "           .: ::::.%@=      ", "                  -@#.      ",
    "                 .%@-       ", "                 +@%:       ", "                :@@:        ",
    "                +@#         ", "                #@:         ", "               =@*          ",
    "              -@%:          ", "             .%@*           ", "             #@%.           ",
    "            .@@-            ", "           .%@=             ", "           +@@:             ",
    "          :@@@:             ", "          =@@%.             ", "          =@#.              ",
    "                            ",
};
