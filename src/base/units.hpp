// SPDX-License-Identifier: Apache-2.0
// Sizes, durations and quantities as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

/// "64MiB", "1 GB", "4096" -> bytes. KiB/MiB/GiB/TiB are powers of 1024, kB/MB/GB/TB of 1000. Throws
/// Error(usage) naming the text when it is no size.
std::uint64_t parse_bytes(std::string_view text);

/// "90", "90s", "15m", "2h", "500ms" -> seconds. Throws Error(usage).
double parse_seconds(std::string_view text);

/// A rate with its unit -> base units: "180 GB/s" -> 1.8e11 B/s, "1.2 TFLOP/s", "3 us" -> s, "400 Gb/s" ->
/// B/s (bits are divided by 8). `base_unit` receives "B/s", "FLOP/s", "FLOP", "FLOP/J", "s", "B", "Hz", "W",
/// "token/s", "op/s" or "1". Throws Error(usage) when the unit is missing or unknown: a bare number is only
/// accepted for unit "1" or "count".
double parse_quantity(std::string_view text, std::string& base_unit);

/// Four significant digits with an SI prefix and the unit: 1.234e11, "B/s" -> "123.4 GB/s"; 3.1e-6, "s" ->
/// "3.1 us".
std::string format_quantity(double value, std::string_view unit);

/// Bytes with a binary prefix, e.g. "256 MiB".
std::string format_bytes(std::uint64_t bytes);

/// Seconds as "850 ms", "12.3 s", "4 min 10 s", "2 h 5 min".
std::string format_seconds(double seconds);

}  // namespace assay
