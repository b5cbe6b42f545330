// SPDX-License-Identifier: Apache-2.0
#include "measure/sizing.hpp"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

double amount(const Portion& p) { return static_cast<double>(p.bytes) * static_cast<double>(p.repetitions); }
double ratio(const Portion& larger, const Portion& smaller) { return amount(larger) / amount(smaller); }

}  // namespace

Sizing::Sizing(Portion wanted, double share_s, double patience_s) noexcept
    : wanted_(wanted),
      next_{std::min(wanted.bytes, first_bytes), 1},
      fitted_(next_),
      share_s_(share_s),
      patience_s_(patience_s) {}

void Sizing::took(double seconds) noexcept {
  spent_s_ += seconds;
  best_s_ = std::min(best_s_, seconds);
  ++tried_;
  const double allowed_s = std::max(share_s_, noise_s);
  // The line through this step and the one before: what each unit adds to a fixed cost.
  const bool second = kept_s_ > 0;
  const double slope_s = second ? std::max(0.0, best_s_ - kept_s_) / (amount(next_) - amount(kept_)) : 0;
  const auto mostly_fixed = [&](const Portion& p, double s) {
    return slope_s * amount(p) < (1 - fixed_part) * s;
  };
  const bool small = best_s_ <= noise_s, fixed = second && mostly_fixed(next_, best_s_);
  const double patience_s = small || fixed ? std::max(patience_s_, 8 * noise_s) : patience_s_;
  const bool overruns = second && best_s_ > allowed_s;
  if (overruns && (best_s_ > overrun * allowed_s || !mostly_fixed(kept_, kept_s_))) {
    if (tried_ < tries && spent_s_ < patience_s) return;
    best_s_ = kept_s_;  // the step before, which is in fitted_, was the last that could be had
    return stay();
  }
  fitted_ = next_;
  if (next_ == wanted_) return stay();
  Portion larger = next_;
  if (next_.bytes < wanted_.bytes)
    larger.bytes = std::min(wanted_.bytes, next_.bytes * static_cast<std::size_t>(growth));
  else
    larger.repetitions =
        std::min(wanted_.repetitions, next_.repetitions * static_cast<std::uint64_t>(growth));
  const bool fits = small || best_s_ * ratio(larger, next_) <= share_s_ ||
                    (fixed && best_s_ + slope_s * (amount(larger) - amount(next_)) <= overrun * allowed_s);
  if (spent_s_ >= patience_s || (!fits && (overruns || tried_ >= tries))) return stay();
  if (!fits) return;
  kept_ = next_;
  kept_s_ = best_s_;
  next_ = larger;
  best_s_ = std::numeric_limits<double>::infinity();
  tried_ = 0;
}

/// Between this step and the next one repetitions fill the share.
void Sizing::stay() noexcept {
  done_ = true;
  seconds_ = best_s_;
  const double room =
      best_s_ > 0 ? std::floor(static_cast<double>(fitted_.repetitions) * (share_s_ / best_s_)) : 1.0;
  const auto fit =
      static_cast<std::uint64_t>(std::clamp(room, 1.0, static_cast<double>(wanted_.repetitions)));
  if (fit <= fitted_.repetitions) return;
  seconds_ *= static_cast<double>(fit) / static_cast<double>(fitted_.repetitions);
  fitted_.repetitions = fit;
}

std::size_t fitted_size(std::size_t n, double probe_s, double share_s) noexcept {
  double single_s =
      probe_s * static_cast<double>(size_probe_divisor * size_probe_divisor * size_probe_divisor);
  if (single_s <= size_patience * share_s) return n;
  const std::size_t least = n / size_probe_divisor;
  while (n > least && single_s > share_s) {
    n /= 2;
    single_s /= 8;
  }
  return n;
}

std::uint64_t fitted_region(std::uint64_t region, double rate, double bytes_per_byte,
                            double share_s) noexcept {
  constexpr std::uint64_t granule = std::uint64_t{2} << 20;
  const double fit = std::max(0.0, share_s) * rate / bytes_per_byte;
  if (!(fit < static_cast<double>(region))) return region;
  return std::min(region, std::max(static_cast<std::uint64_t>(fit) / granule, std::uint64_t{1}) * granule);
}

std::size_t fitted_count(std::size_t most, double part_s, double share_s) noexcept {
  const double fit = std::max(0.0, share_s) / part_s;
  return fit < static_cast<double>(most) ? std::max<std::size_t>(1, static_cast<std::size_t>(fit)) : most;
}

}  // namespace assay
