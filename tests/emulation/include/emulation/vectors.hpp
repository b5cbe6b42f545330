// SPDX-License-Identifier: Apache-2.0
// CUDA's short vectors.
#pragma once

#define EMULATION_VECTOR(name, type, bytes2, bytes4)                  \
  struct alignas(bytes2) name##2 {                                    \
    type x, y;                                                        \
  };                                                                  \
  struct alignas(bytes4) name##4 {                                    \
    type x, y, z, w;                                                  \
  };                                                                  \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; } \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

EMULATION_VECTOR(float, float, 8, 16)
EMULATION_VECTOR(int, int, 8, 16)
EMULATION_VECTOR(uint, unsigned, 8, 16)
EMULATION_VECTOR(double, double, 16, 16)
EMULATION_VECTOR(ulonglong, unsigned long long, 16, 16)
EMULATION_VECTOR(ushort, unsigned short, 4, 8)
EMULATION_VECTOR(uchar, unsigned char, 2, 4)
#undef EMULATION_VECTOR
