// SPDX-License-Identifier: Apache-2.0
#include "kernels/pattern.hpp"

#include "kernels/cuda/grid.cuh"
#include "kernels/cuda/pattern_errors.cuh"
#include "kernels/cuda/pattern_words.cuh"
#include "kernels/stream.hpp"

namespace assay::kernels::cuda {
namespace {

/// A run of pairs of words of a region: one launch.
struct SweepRange {
  ulonglong2* pairs;
  std::size_t count;
  std::uint64_t index;     ///< of the closed form, of the first word
  std::uint64_t position;  ///< in the region, of the first word
  Words expected, next;
  std::size_t rotation;
  bool down;
  bool waits;  ///< wrong words keep their value until look_again has been there
};

/// Past the L1 cache: another multiprocessor may have written, and what this one still holds is not what
/// memory holds.
__device__ ulonglong2 load_fresh(const ulonglong2* p) { return __ldcv(p); }

/// A thread's words of its tile and what is known about them.
struct Tile {
  std::size_t pair;           ///< of the thread's first
  std::uint64_t state, next;  ///< tile_state of the two data
};

template <Form form, unsigned threads, bool next>
__device__ ulonglong2 pair_of(const Words& words, const Tile& tile, unsigned k) {
  const std::uint64_t state = next ? tile.next : tile.state;
  return make_ulonglong2(word_at<form>(words, state, 2 * k * threads),
                         word_at<form>(words, state, 2 * k * threads + 1));
}

/// Word by word, for all threads of a block in which one has a difference. Returns a bit for each word, 2 per
/// pair, that has a record and is to stay as it is. Uses up `got`.
template <Form form, unsigned threads, unsigned pairs>
__device__ unsigned examine(const SweepRange& range, const Tile& tile, ulonglong2 (&got)[pairs], bool write,
                            DeviceErrors* errors) {
  __shared__ BlockErrors mine;
  begin_block(mine);
  unsigned kept = 0;
  _Pragma("unroll 1") for (unsigned word = 0; word < 2 * pairs; ++word) {
    const unsigned offset = 2 * (word / 2) * threads + word % 2;
    const std::uint64_t actual = got[0].x;
    // Moved on, not indexed: an index that the compiler does not know would put the array into local memory.
    ASSAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) got[k] = make_ulonglong2(got[k].y, k + 1 < pairs ? got[k + 1].x : 0);
    const std::uint64_t expected = word_at<form>(range.expected, tile.state, offset);
    DeviceRecord* record = count_wrong(expected, actual, mine, errors);
    if (record == nullptr) continue;
    const std::size_t place = 2 * tile.pair + offset;
    fill_record(*record, reinterpret_cast<const std::uint64_t*>(range.pairs) + place, range.position + place,
                expected, actual);
    record->waits = range.waits ? 1 : 0;
    record->next = write ? word_at<form>(range.next, tile.next, offset) : actual;
    if (range.waits) kept |= 1u << word;
  }
  end_block(mine, errors);
  return kept;
}

__device__ void store_pair(ulonglong2* to, const ulonglong2& v, unsigned kept) {
  if (kept == 0) return __stcs(to, v);
  auto* words = reinterpret_cast<unsigned long long*>(to);
  if ((kept & 1u) == 0) words[0] = v.x;
  if ((kept & 2u) == 0) words[1] = v.y;
}

/// All of a tile is verified before any of it is written.
template <Form form, bool verify, bool write>
__global__ void __launch_bounds__(tile_shape(verify, write).threads)
    sweep_kernel(SweepRange range, DeviceErrors* errors) {
  constexpr unsigned threads = tile_shape(verify, write).threads, pairs = tile_shape(verify, write).pairs;
  const std::size_t pair =
      tile_of(blockIdx.x, gridDim.x, range.rotation, range.down) * (threads * pairs) + threadIdx.x;
  const std::uint64_t index = range.index + 2 * pair;
  const Tile tile{pair, verify ? tile_state<form>(range.expected, index) : 0,
                  write ? tile_state<form>(range.next, index) : 0};
  const auto inside = [&](unsigned k) { return pair + std::size_t{k} * threads < range.count; };
  unsigned kept = 0;
  if constexpr (verify) {
    ulonglong2 got[pairs];
    ASSAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k)
      got[k] = inside(k) ? load_fresh(range.pairs + pair + std::size_t{k} * threads)
                         : pair_of<form, threads, false>(range.expected, tile, k);
    std::uint64_t differs = 0;
    ASSAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) {
      const ulonglong2 want = pair_of<form, threads, false>(range.expected, tile, k);
      differs |= (got[k].x ^ want.x) | (got[k].y ^ want.y);
    }
    if (__syncthreads_or(differs != 0) != 0) kept = examine<form, threads>(range, tile, got, write, errors);
  }
  if constexpr (write) {
    ASSAY_UNROLL
    for (unsigned k = 0; k < pairs; ++k) {
      if (inside(k))
        store_pair(range.pairs + pair + std::size_t{k} * threads,
                   pair_of<form, threads, true>(range.next, tile, k), kept >> (2 * k) & 3u);
    }
  }
}

/// Ends of a run that fill no pair: lane 0 has the word before the pairs, lane 1 the one behind.
__global__ void ends_kernel(SweepRange range, bool before, bool behind, bool verify, bool write,
                            DeviceErrors* errors) {
  __shared__ BlockErrors mine;
  begin_block(mine);
  const bool here = (threadIdx.x == 0 && before) || (threadIdx.x == 1 && behind);
  const std::ptrdiff_t place = threadIdx.x == 0 ? -1 : 2 * static_cast<std::ptrdiff_t>(range.count);
  const std::uint64_t index = range.index + static_cast<std::uint64_t>(place);
  auto* word = reinterpret_cast<unsigned long long*>(range.pairs) + place;
  if (verify) {
    const std::uint64_t expected = here ? any_word(range.expected, index) : 0;
    const std::uint64_t actual = here ? __ldcv(word) : 0;
    if (DeviceRecord* record = count_wrong(expected, actual, mine, errors); record != nullptr) {
      fill_record(*record, reinterpret_cast<const std::uint64_t*>(word),
                  range.position + static_cast<std::uint64_t>(place), expected, actual);
      record->waits = 0;
      record->next = actual;
    }
  }
  if (write && here) *word = any_word(range.next, index);
  end_block(mine, errors);
}

/// Words whose index has one bit set.
__global__ void powers_kernel(std::uint64_t* words, std::size_t count, std::uint64_t first, Words next) {
  const std::uint64_t index = std::uint64_t{1} << (threadIdx.x % 64);
  if (threadIdx.x < 64 && index >= first && index - first < count)
    words[index - first] = any_word(next, index);
}

__global__ void look_kernel(std::uint64_t* words, DeviceErrors* errors, unsigned look) {
  const unsigned long long kept = errors->kept < errors->capacity ? errors->kept : errors->capacity;
  for (unsigned long long i = global_thread(); i < kept; i += global_threads()) {
    DeviceRecord& record = records_of(errors)[i];
    if (record.waits == 0) continue;
    auto* word = reinterpret_cast<unsigned long long*>(words) + record.index;
    record.reread[look] = __ldcv(word);
    if (look == 1 && record.next != record.actual) *word = record.next;
  }
}

__global__ void clear_kernel(DeviceErrors* errors, std::size_t capacity) {
  for (unsigned i = threadIdx.x; i < 128; i += blockDim.x) (&errors->bits[0][0])[i] = 0;
  if (threadIdx.x != 0) return;
  errors->count = errors->kept = 0;
  errors->capacity = capacity;
}

template <Form form, bool verify, bool write>
void start(SweepRange range, std::uint64_t turn, DeviceErrors* errors, void* stream) {
  constexpr TileShape shape = tile_shape(verify, write);
  const std::size_t tiles = (range.count + shape.tile_pairs() - 1) / shape.tile_pairs();
  range.rotation = rotation_of(turn, tiles, multiprocessors());
  launch(sweep_kernel<form, verify, write>, dim3(static_cast<unsigned>(tiles)), dim3(shape.threads), 0,
         stream, range, errors);
}

template <Form form>
void start(const SweepRange& range, bool verify, bool write, std::uint64_t turn, DeviceErrors* errors,
           void* stream) {
  if (verify && write) return start<form, true, true>(range, turn, errors, stream);
  if (verify) return start<form, true, false>(range, turn, errors, stream);
  start<form, false, true>(range, turn, errors, stream);
}

/// One launch for the pairs of a run and one for its ends, if it has any.
void start(const SweepRange& range, bool before, bool behind, bool verify, bool write, std::uint64_t turn,
           DeviceErrors* errors, void* stream) {
  if (range.count > 0) {
    switch (verify ? range.expected.form : range.next.form) {
      case Form::toggle: start<Form::toggle>(range, verify, write, turn, errors, stream); break;
      case Form::hash: start<Form::hash>(range, verify, write, turn, errors, stream); break;
      case Form::walking: start<Form::walking>(range, verify, write, turn, errors, stream); break;
      case Form::modulo: start<Form::modulo>(range, verify, write, turn, errors, stream); break;
      case Form::powers: start<Form::powers>(range, verify, write, turn, errors, stream); break;
    }
  }
  if (before || behind)
    launch(ends_kernel, dim3(1), dim3(32), 0, stream, range, before, behind, verify, write, errors);
}

/// One kernel can verify and write what has one form, and for a hash one key: else it would compute two for
/// each word.
bool one_kernel(const Words& a, const Words& b) {
  return a.form == b.form && (a.form != Form::hash || a.key == b.key) &&
         (a.form != Form::modulo || a.modulus == b.modulus);
}

/// words[begin, end) of a region, whose word i follows the closed form at i - shift.
void run(const Sweep& sweep, std::uint64_t* words, std::size_t begin, std::size_t end, std::size_t shift,
         std::uint64_t turn, DeviceErrors* errors, void* stream) {
  if (begin >= end) return;
  const bool before = reinterpret_cast<std::uintptr_t>(words + begin) % 16 != 0;
  const std::size_t first = begin + (before ? 1 : 0);
  SweepRange range{reinterpret_cast<ulonglong2*>(words + first),
                   (end - first) / 2,
                   first - shift,
                   first,
                   words_of(sweep.expected),
                   words_of(sweep.next),
                   0,
                   sweep.down,
                   true};
  const bool behind = (end - first) % 2 != 0, write = sweep.write && !sweep.powers_only;
  if (sweep.verify && write && !one_kernel(range.expected, range.next)) {
    range.waits = false;  // the second kernel would overwrite what waits
    start(range, before, behind, true, false, turn, errors, stream);
    return start(range, before, behind, false, true, turn, errors, stream);
  }
  if (sweep.verify || write) start(range, before, behind, sweep.verify, write, turn, errors, stream);
}

}  // namespace

std::size_t errors_bytes(std::size_t capacity) {
  return sizeof(DeviceErrors) + capacity * sizeof(DeviceRecord);
}

void clear_errors(DeviceErrors* errors, std::size_t capacity, void* stream) {
  launch(clear_kernel, dim3(1), dim3(128), 0, stream, errors, capacity);
}

void sweep(const Sweep& sweep, std::uint64_t* words, std::size_t count, std::uint64_t turn,
           DeviceErrors* errors, void* stream) {
  const std::size_t half = count / 2;
  if (sweep.move && sweep.engine) {
    cudaMemcpyAsync(words + half, words, half * sizeof(std::uint64_t), cudaMemcpyDeviceToDevice,
                    static_cast<cudaStream_t>(stream));
    return;
  }
  if (sweep.move)
    return cuda::stream(StreamOp::copy, reinterpret_cast<double*>(words + half),
                        reinterpret_cast<const double*>(words), nullptr, half, nullptr, stream);
  const std::size_t fold = sweep.folded ? half : count, fold_end = sweep.folded ? 2 * half : count;
  run(sweep, words, 0, fold, 0 - sweep.first, turn, errors, stream);
  run(sweep, words, fold, fold_end, half - sweep.first, turn, errors, stream);
  run(sweep, words, fold_end, count, 0 - sweep.first, turn, errors, stream);
  if (sweep.write && sweep.powers_only)
    launch(powers_kernel, dim3(1), dim3(64), 0, stream, words, count, sweep.first, words_of(sweep.next));
}

void look_again(std::uint64_t* words, DeviceErrors* errors, int look, void* stream) {
  launch(look_kernel, dim3(4), dim3(256), 0, stream, words, errors, static_cast<unsigned>(look));
}

}  // namespace assay::kernels::cuda
