// SPDX-License-Identifier: Apache-2.0
// Twins of the PTX that kernels/cuda/mma.cuh wraps: tensor core products, their fragment loads, and copies
// that go on by themselves.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "emulation/grid.hpp"

namespace emulation {

inline float half_of(unsigned packed, unsigned which) {
  const std::uint32_t bits = which == 0 ? packed << 16 : packed & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// mma.sync.m16n8k16.row.col.f32.bf16.bf16.f32 by the layout of fragments in the PTX manual: a lane of group
/// g = lane / 4 and place t = lane % 4 has of A rows g and g + 8, columns 2t, 2t + 1 and 8 more; of B rows
/// 2t, 2t + 1 and 8 more, column g; of C rows g and g + 8, columns 2t and 2t + 1.
inline void mma_bf16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  struct Fragments {
    unsigned a[4], b[2];
  };
  const Fragments mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const std::byte(*all)[64] = exchange(0xffffffffu, &mine, sizeof(mine));
  Fragments lanes[warp_size];
  for (unsigned l = 0; l < warp_size; ++l) std::memcpy(&lanes[l], all[l], sizeof(mine));
  const unsigned g = self().lane / 4, t = self().lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = i < 2 ? 0 : 1, column = 2 * t + i % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const float x = half_of(lanes[g * 4 + k % 8 / 2].a[row + 2 * (k / 8)], k % 2);
      const float y = half_of(lanes[column * 4 + k % 8 / 2].b[k / 8], k % 2);
      c[i] += x * y;
    }
  }
}

/// ldmatrix.x4 of 8 x 8 matrices of 2-byte elements: lane l says where row l % 8 of matrix l / 8 begins.
/// `transposed`: .trans.
inline void ldmatrix(unsigned (&r)[4], const void* row, bool transposed) {
  const std::byte(*all)[64] = exchange(0xffffffffu, &row, sizeof(row));
  const auto element = [&](unsigned matrix, unsigned y, unsigned x) {
    const std::uint16_t* at;
    std::memcpy(&at, all[8 * matrix + y], sizeof(at));
    return unsigned{at[x]};
  };
  const unsigned g = self().lane / 4, t = 2 * (self().lane % 4);
  for (unsigned j = 0; j < 4; ++j)
    r[j] = transposed ? element(j, t, g) | element(j, t + 1, g) << 16
                      : element(j, g, t) | element(j, g, t + 1) << 16;
}

/// Copies of one thread that it has not waited for. They are made as late as allowed, so that a missing wait
/// shows.
struct AsyncCopies {
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    bool valid;
  };
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;

  static AsyncCopies& mine() {
    static AsyncCopies of[1024];
    return of[self().warp * warp_size + self().lane];
  }
  void wait(std::size_t most) {
    while (groups.size() > most) {
      for (const Copy& c : groups.front()) {
        if (c.valid)
          std::memcpy(c.to, c.from, c.bytes);
        else
          std::memset(c.to, 0, c.bytes);
      }
      groups.pop_front();
    }
  }
};

}  // namespace emulation
