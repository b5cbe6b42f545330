// SPDX-License-Identifier: Apache-2.0
// The RAM test patterns: which sweeps, in which order. Sources: March C- (van de Goor 1991), March SS
// (Hamdioui, van de Goor, Rodgers 2002), March SR (Hamdioui, van de Goor 2000), moving inversions and
// modulo-n (memtest86), words of five-a and line-codes (stressapptest), the rest are classical. The
// operations of a march element that reads or writes a cell several times are a sweep each: caches would keep
// more than one of them from the cells anyway.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"
#include "kernels/pattern.hpp"

namespace assay::kernels {

std::uint64_t data_word(const Data& data, std::size_t index) noexcept {
  std::uint64_t word = 0;
  switch (data.kind) {
    case Background::own_address:
    case Background::random: word = address_hash(data.key, index); break;
    case Background::solid: break;
    case Background::walking: word = std::uint64_t{1} << ((index + data.variant) % 64); break;
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
    case Background::powers: word = std::has_single_bit(index) ? address_hash(data.key, index) : 0; break;
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

std::vector<Sweep> march_c_minus(const Data& zero) {
  const Data one = inverse(zero);
  return {write(zero),
          read_write(zero, one),
          read_write(one, zero),
          read_write(zero, one, true),
          read_write(one, zero, true),
          read(zero)};
}

/// March C- on stripes of 1 to 128 zeros and as many ones.
std::vector<Sweep> march_c_stripes() {
  std::vector<Sweep> sweeps;
  for (std::uint32_t period = 1; period <= 8; ++period) {
    const auto one = march_c_minus({Background::stripe, 0, period, false});
    sweeps.insert(sweeps.end(), one.begin(), one.end());
  }
  return sweeps;
}

/// w0; (r0 r0 w0 r0 w1); (r1 r1 w1 r1 w0); both again, descending; r0: 22 operations per cell.
std::vector<Sweep> march_ss() {
  const Data zero, one = inverse(zero);
  std::vector<Sweep> sweeps{write(zero)};
  for (const bool down : {false, true}) {
    for (const auto& [from, to] : {std::pair{zero, one}, std::pair{one, zero}})
      sweeps.insert(sweeps.end(),
                    {read(from, down), read_write(from, from, down), read_write(from, to, down)});
  }
  sweeps.push_back(read(zero));
  return sweeps;
}

/// down w0; up (r0 w1 r1 w0); up (r0 r0); up w1; down (r1 w0 r0 w1); down (r1 r1): 14 operations per cell.
std::vector<Sweep> march_sr() {
  const Data zero, one = inverse(zero);
  return {write(zero, true),
          read_write(zero, one),
          read_write(one, zero),
          read(zero),
          read(zero),
          write(one),
          read_write(one, zero, true),
          read_write(zero, one, true),
          read(one, true),
          read(one, true)};
}

/// Words at powers of two are changed; any other word that changes, or any of them that does not, shows a
/// line.
std::vector<Sweep> address_bits(std::uint64_t key) {
  std::vector<Sweep> sweeps;
  for (const bool inverted : {false, true}) {
    const Data background{Background::solid, 0, 0, inverted}, powers{Background::powers, key, 0, inverted};
    Sweep change = read_write(background, powers);
    change.powers_only = true;
    sweeps.insert(sweeps.end(), {write(background), change, read(powers)});
  }
  return sweeps;
}

/// A lone 1, then a lone 0, at every place of every `width` bits.
std::vector<Sweep> walking_in(unsigned width) {
  std::vector<Data> values;
  std::uint64_t ones = 0;
  for (unsigned bit = 0; bit < 64; bit += width) ones |= std::uint64_t{1} << bit;
  for (unsigned bit = 0; bit < width; ++bit) {
    const Data data{Background::toggle, ones << bit, 63, false};
    values.insert(values.end(), {data, inverse(data)});
  }
  return chain(values);
}

std::vector<Sweep> both_ways(const Data& data) { return chain({data, inverse(data)}); }

/// Every lane of the bus changes with every 4, 8 and 16 bytes; then 4 and 5 of every 8 lanes: what a bus that
/// inverts bytes with more than half of their lanes changing (DBI) passes on as it is, and what it inverts.
std::vector<Sweep> switching_noise() {
  constexpr std::uint64_t all = ~std::uint64_t{0}, four = 0x0f0f0f0f0f0f0f0fULL, five = 0x1f1f1f1f1f1f1f1fULL;
  std::vector<Data> values;
  for (const Data& data :
       {Data{Background::toggle, 0x00000000ffffffffULL, 63}, Data{Background::toggle, 0, 0, false, all},
        Data{Background::toggle, 0, 1, false, all}, Data{Background::toggle, 0, 0, false, four},
        Data{Background::toggle, 0, 0, false, five}})
    values.insert(values.end(), {data, inverse(data)});
  return chain(values);
}

/// Words of 8b/10b symbols with the longest and the shortest runs, both by turns, and Five7: a 1 or 0 less
/// than half.
std::vector<Sweep> line_codes() {
  std::vector<Data> values;
  for (const Data& data : {Data{Background::toggle, 0x1616161616161616ULL, 63},
                           Data{Background::toggle, 0xb5b5b5b5b5b5b5b5ULL, 63},
                           Data{Background::toggle, 0xb5b5b5b5b5b5b5b5ULL, 0},
                           Data{Background::toggle, 0x5557555555555557ULL, 63}})
    values.insert(values.end(), {data, inverse(data)});
  return chain(values);
}

/// Written once, read again and again.
std::vector<Sweep> hold(const Data& data) {
  std::vector<Sweep> sweeps{write(data)};
  sweeps.insert(sweeps.end(), 16, read(data));
  return sweeps;
}

std::vector<Sweep> moving_inversions() {
  const Data zero, one = inverse(zero);
  return {write(zero), read_write(zero, one), read_write(one, zero, true), read(zero)};
}

std::vector<Sweep> block_move(const Data& first, bool engine) {
  Sweep move;
  move.move = true;
  move.engine = engine;
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
      "random", "modulo-20", "block-move", "retention",
      // Of the longer levels, and of GPUs.
      "address-bits", "walking-8", "walking-32", "five-a", "row-stripe", "column-stripe", "switching-noise",
      "line-codes", "march-c-stripes", "march-ss", "march-sr", "block-move-engine", "hold"};
  return names;
}

namespace {

/// The patterns that were there first; nothing for another name.
Pattern classical(const std::string& name, const Data& address, const Data& random, double pause_s) {
  const Data checker{Background::checkerboard, 0, 0, false};
  if (name == "own-address")
    return {name, both_ways(address), "address decoder, aliases, lost and stale writes"};
  if (name == "moving-inversions") return {name, moving_inversions(), "stuck-at, transition, coupling"};
  if (name == "walking-ones") return {name, walking(false), "data lines shorted or open, seen by a lone 1"};
  if (name == "walking-zeros") return {name, walking(true), "data lines shorted or open, seen by a lone 0"};
  if (name == "checkerboard")
    return {name, both_ways(checker), "coupling and leakage between neighbouring cells"};
  if (name == "march-c")
    return {name, march_c_minus({}), "all unlinked stuck-at, transition, address and coupling faults"};
  if (name == "random") return {name, both_ways(random), "pattern-sensitive cells, switching noise"};
  if (name == "modulo-20")
    return {name, modulo(20), "coupling that caches and write buffers hide from others"};
  if (name == "block-move")
    return {name, block_move(address, false), "copy path: loads, stores and bus turn-around"};
  if (name == "retention") return {name, retention(random, pause_s), "refresh and leakage"};
  return {};
}

Pattern extended(const std::string& name, const Data& address, const Data& random) {
  // Neighbouring rows of cells differ, neighbours in a row agree; and the other way round. A row: 128 words.
  const Data rows{Background::toggle, 0, 7}, columns{Background::toggle, 0x5555555555555555ULL, 63};
  // 0x5aa5a55a, 0xa55a5aa5 by turns: no two neighbouring bytes alike.
  const Data five_a{Background::toggle, 0x5aa5a55aa55a5aa5ULL, 0};
  if (name == "address-bits") return {name, address_bits(address.key), "address lines shorted or open"};
  if (name == "walking-8") return {name, walking_in(8), "lines shorted within a byte lane"};
  if (name == "walking-32") return {name, walking_in(32), "lines shorted within 32 bits of the bus"};
  if (name == "five-a") return {name, both_ways(five_a), "coupling between bytes and beats"};
  if (name == "row-stripe") return {name, both_ways(rows), "coupling between rows of cells"};
  if (name == "column-stripe") return {name, both_ways(columns), "coupling between columns of cells"};
  if (name == "switching-noise")
    return {name, switching_noise(),
            "signals that suffer when all lanes switch, or just fewer than a bus inverts"};
  if (name == "line-codes") return {name, line_codes(), "signals that suffer from long and short runs"};
  if (name == "march-c-stripes")
    return {name, march_c_stripes(),
            "coupling within a word and between neighbours, any distance to 128 bits"};
  if (name == "march-ss")
    return {name, march_ss(), "all static faults of one and two cells, read- and write-disturb among them"};
  if (name == "march-sr")
    return {name, march_sr(),
            "simple realistic faults: deceptive reads, incorrect reads, linked transitions"};
  if (name == "block-move-engine") return {name, block_move(address, true), "copy engine and its path"};
  if (name == "hold") return {name, hold(random), "cells that lose their content when read"};
  return {};
}

}  // namespace

Pattern make_pattern(const std::string& name, std::uint64_t key, double pause_s) {
  const Data address{Background::own_address, mix64(key, hash_text(name)), 0, false};
  const Data random{Background::random, mix64(key, hash_text(name)), 0, false};
  Pattern pattern = classical(name, address, random, pause_s);
  if (pattern.sweeps.empty()) pattern = extended(name, address, random);
  if (!pattern.sweeps.empty()) return pattern;
  std::string known;
  for (const std::string& n : pattern_names()) known += (known.empty() ? "" : ", ") + n;
  throw_usage("unknown memory pattern '" + name + "' (known: " + known + ")");
}

}  // namespace assay::kernels
