// SPDX-License-Identifier: Apache-2.0
// The RAM test patterns: which sweeps, in which order. Sources: March C- (van de Goor 1991), moving
// inversions and modulo-n (memtest86), the rest are classical.
#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/random.hpp"
#include "kernels/pattern.hpp"

namespace assay::kernels {

std::uint64_t data_word(const Data& data, std::size_t index) noexcept {
  std::uint64_t word = 0;
  switch (data.kind) {
    case Background::own_address:
    case Background::random:
      word = address_hash(data.key, index);
      break;
    case Background::solid:
      break;
    case Background::walking:
      word = std::uint64_t{1} << ((index + data.variant) % 64);
      break;
    case Background::checkerboard:
      word = index % 2 == 0 ? 0xaaaaaaaaaaaaaaaaULL : 0x5555555555555555ULL;
      break;
    case Background::stripe:
      if (data.variant > 6) {
        word = (index >> (data.variant - 7)) % 2 != 0 ? ~std::uint64_t{0} : 0;
      } else {
        for (unsigned bit = 0; bit < 64; ++bit)
          word |= static_cast<std::uint64_t>(bit >> (data.variant == 0 ? 0 : data.variant - 1) & 1U) << bit;
      }
      break;
    case Background::modulo: {
      const std::size_t modulus = data.variant == 0 ? 1 : data.variant;
      word = index % modulus == data.key % modulus ? ~std::uint64_t{0} : 0;
      break;
    }
    case Background::toggle:
      word = data.key ^ ((index >> std::min(data.variant, 63u)) % 2 != 0 ? data.mask : 0);
      break;
    case Background::powers:
      word = std::has_single_bit(index) ? address_hash(data.key, index) : 0;
      break;
  }
  return data.inverted ? ~word : word;
}

double Pattern::bytes_per_byte() const noexcept {
  double bytes = 0;
  for (const Sweep& s : sweeps) bytes += static_cast<double>(s.bytes_per_word());
  return bytes / 8.0;
}

namespace {

Data inverse(Data data) noexcept {
  data.inverted = !data.inverted;
  return data;
}

Sweep write(const Data& next, bool down = false) noexcept {
  Sweep s;
  s.write = true;
  s.next = next;
  s.down = down;
  return s;
}

Sweep read(const Data& expected, bool down = false) noexcept {
  Sweep s;
  s.verify = true;
  s.expected = expected;
  s.down = down;
  return s;
}

Sweep read_write(const Data& expected, const Data& next, bool down = false) noexcept {
  Sweep s = read(expected, down);
  s.write = true;
  s.next = next;
  return s;
}

/// Write the first value, replace each by its successor while checking it, check the last.
std::vector<Sweep> chain(const std::vector<Data>& values) {
  std::vector<Sweep> sweeps{write(values.front())};
  for (std::size_t i = 1; i < values.size(); ++i) sweeps.push_back(read_write(values[i - 1], values[i]));
  sweeps.push_back(read(values.back()));
  return sweeps;
}

std::vector<Sweep> walking(bool inverted) {
  std::vector<Data> values;
  for (std::uint32_t bit = 0; bit < 64; ++bit) values.push_back({Background::walking, 0, bit, inverted});
  return chain(values);
}

std::vector<Sweep> modulo(std::uint32_t modulus) {
  std::vector<Data> values;
  for (std::uint32_t offset = 0; offset < modulus; ++offset) {
    values.push_back({Background::modulo, offset, modulus, false});
    values.push_back({Background::modulo, offset, modulus, true});
  }
  return chain(values);
}

std::vector<Sweep> march_c_minus() {
  const Data zero, one = inverse(zero);
  return {write(zero),
          read_write(zero, one),
          read_write(one, zero),
          read_write(zero, one, true),
          read_write(one, zero, true),
          read(zero)};
}

std::vector<Sweep> moving_inversions() {
  const Data zero, one = inverse(zero);
  return {write(zero), read_write(zero, one), read_write(one, zero, true), read(zero)};
}

std::vector<Sweep> block_move(const Data& first) {
  Sweep move;
  move.move = true;
  std::vector<Sweep> sweeps;
  for (const Data& data : {first, inverse(first)}) {
    Sweep check = read(data);
    check.folded = true;
    sweeps.insert(sweeps.end(), {write(data), move, check});
  }
  return sweeps;
}

std::vector<Sweep> retention(const Data& data, double pause_s) {
  auto sweeps = chain({data, inverse(data)});
  for (std::size_t i = 1; i < sweeps.size(); ++i) sweeps[i].pause_s = pause_s;
  return sweeps;
}

}  // namespace

const std::vector<std::string>& pattern_names() {
  static const std::vector<std::string> names = {
      "own-address", "moving-inversions", "walking-ones", "walking-zeros", "checkerboard", "march-c",
      "random",      "modulo-20",         "block-move",   "retention"};
  return names;
}

Pattern make_pattern(const std::string& name, std::uint64_t key, double pause_s) {
  const Data address{Background::own_address, mix64(key, hash_text(name)), 0, false};
  const Data random{Background::random, mix64(key, hash_text(name)), 0, false};
  const Data checker{Background::checkerboard, 0, 0, false};
  if (name == "own-address")
    return {name, chain({address, inverse(address)}), "address decoder, aliases, lost and stale writes"};
  if (name == "moving-inversions") return {name, moving_inversions(), "stuck-at, transition, coupling"};
  if (name == "walking-ones") return {name, walking(false), "data lines shorted or open, seen by a lone 1"};
  if (name == "walking-zeros") return {name, walking(true), "data lines shorted or open, seen by a lone 0"};
  if (name == "checkerboard")
    return {name, chain({checker, inverse(checker)}), "coupling and leakage between neighbouring cells"};
  if (name == "march-c")
    return {name, march_c_minus(), "all unlinked stuck-at, transition, address and coupling faults"};
  if (name == "random")
    return {name, chain({random, inverse(random)}), "pattern-sensitive cells, switching noise"};
  if (name == "modulo-20")
    return {name, modulo(20), "coupling that caches and write buffers hide from others"};
  if (name == "block-move")
    return {name, block_move(address), "copy path: loads, stores and bus turn-around"};
  if (name == "retention") return {name, retention(random, pause_s), "refresh and leakage"};
  std::string known;
  for (const std::string& n : pattern_names()) known += (known.empty() ? "" : ", ") + n;
  throw_usage("unknown memory pattern '" + name + "' (known: " + known + ")");
}

}  // namespace assay::kernels
