// SPDX-License-Identifier: Apache-2.0
#include "emulation/grid.hpp"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "emulation/traffic.hpp"
#include "runtime.hpp"

namespace emulation {
namespace {

namespace context = boost::context;

struct Warp {
  std::byte slots[2][warp_size]
                 [64];  ///< two, so that a fast lane does not overwrite what a slow one still reads
  unsigned arrived = 0, ended = 0;
  std::uint64_t generation = 0;
};

struct Fiber {
  Thread facts;
  context::fiber run, back;
  bool ended = false;
};

/// One block at a time.
struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::size_t current = 0, arrived = 0, ended = 0;
  std::uint64_t generation = 0, progress = 0;
};
Block* running = nullptr;

Fiber& me() { return running->fibers[running->current]; }

void yield() {
  Fiber& f = me();
  f.back = std::move(f.back).resume();
}

void pass_barrier(Block& b) {
  if (b.arrived + b.ended < b.fibers.size() || b.arrived == 0) return;
  b.arrived = 0;
  ++b.generation;
  ++b.progress;
}

void pass_warp(Block& b, Warp& w, unsigned mask) {
  if (((w.arrived | w.ended) & mask) != mask) return;
  w.arrived = 0;
  ++w.generation;
  ++b.progress;
}

void start(Fiber& f, const std::function<void()>& body, context::pooled_fixedsize_stack& stacks) {
  f.run = context::fiber(std::allocator_arg, stacks, [&f, &body](context::fiber&& back) {
    f.back = std::move(back);
    body();
    f.ended = true;
    return std::move(f.back);
  });
}

[[noreturn]] void stuck(const Block& b) {
  for (const Fiber& f : b.fibers) {
    if (f.ended) continue;
    std::fprintf(stderr, "emulation: block %u,%u,%u: thread %u waits for others that never come\n",
                 f.facts.block.x, f.facts.block.y, f.facts.block.z, f.facts.thread.x);
    break;
  }
  std::abort();
}

void run_block(Block& b, const std::function<void()>& body, context::pooled_fixedsize_stack& stacks) {
  for (Fiber& f : b.fibers) start(f, body, stacks);
  while (b.ended < b.fibers.size()) {
    const std::uint64_t before = b.progress;
    for (b.current = 0; b.current < b.fibers.size(); ++b.current) {
      Fiber& f = b.fibers[b.current];
      if (f.ended) continue;
      f.run = std::move(f.run).resume();
      if (!f.ended) continue;
      ++b.ended;
      ++b.progress;
      b.warps[f.facts.warp].ended |= 1u << f.facts.lane;
      pass_barrier(b);
    }
    if (b.progress == before) stuck(b);
  }
}

}  // namespace

const Thread& self() noexcept { return me().facts; }

void sync_block() {
  Block& b = *running;
  const std::uint64_t generation = b.generation;
  ++b.arrived;
  pass_barrier(b);
  while (b.generation == generation) yield();
}

const std::byte (*exchange(unsigned mask, const void* mine, std::size_t bytes))[64] {
  Block& b = *running;
  const Thread& t = me().facts;
  Warp& w = b.warps[t.warp];
  // Lanes that the block does not have count as ended (see run_grid).
  const std::uint64_t generation = w.generation;
  auto& slots = w.slots[generation % 2];
  std::memcpy(slots[t.lane], mine, bytes);
  w.arrived |= 1u << t.lane;
  pass_warp(b, w, mask);
  while (w.generation == generation) {
    yield();
    pass_warp(b, w, mask);
  }
  return slots;
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body) {
  if (is_device(current_device) && has_fault(current_device, "no-image")) {
    keep(cudaErrorNoKernelImageForDevice);
    return;
  }
  static context::pooled_fixedsize_stack stacks(128 * 1024);
  ++counts().launches;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  std::vector<std::byte> shared(shared_bytes + 1024, std::byte{0xa5});
  void* aligned = shared.data() + (1024 - reinterpret_cast<std::uintptr_t>(shared.data()) % 1024);
  Block* const outer = running;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        Block b;
        b.fibers.resize(threads);
        b.warps.resize((threads + warp_size - 1) / warp_size);
        for (std::size_t i = 0; i < threads; ++i) {
          Thread& t = b.fibers[i].facts;
          const auto n = static_cast<unsigned>(i);
          t.thread = {n % block.x, n / block.x % block.y, n / block.x / block.y};
          t.block = {x, y, z};
          t.block_size = block;
          t.grid_size = grid;
          t.lane = n % warp_size;
          t.warp = n / warp_size;
          t.sm = (x + grid.x * (y + grid.y * z)) % 8;
          t.shared = aligned;
        }
        if (threads % warp_size != 0) b.warps.back().ended = ~0u << (threads % warp_size);
        running = &b;
        run_block(b, body, stacks);
      }
  running = outer;
}

}  // namespace emulation
