// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "suites/storage/engine.hpp"

namespace assay::storage {
namespace {

class LimitedEngine final : public Engine {
 public:
  LimitedEngine(std::unique_ptr<Engine> inner, double bytes_per_s)
      : Engine(inner->depth()), inner_(std::move(inner)), pace_(bytes_per_s) {}

  std::string name() const override { return inner_->name(); }
  void use_memory(std::span<std::byte> memory) override { inner_->use_memory(memory); }
  void fill_memory(std::span<const Request> requests) override { inner_->fill_memory(requests); }
  void fetch_memory(std::span<const Request> requests) override { inner_->fetch_memory(requests); }

  void run(bool write, std::span<Request> requests) override {
    const auto step = static_cast<std::size_t>(depth());
    for (std::size_t at = 0; at < requests.size(); at += step) {
      const auto part = requests.subspan(at, std::min(step, requests.size() - at));
      pace_.begin();
      inner_->run(write, part);
      double bytes = 0;
      for (const Request& r : part) bytes += r.bytes;
      pace_.moved(bytes);
    }
  }

 private:
  std::unique_ptr<Engine> inner_;
  Pace pace_;
};

}  // namespace

void Pace::begin() { due_s_ = std::max(due_s_, now_s()); }

void Pace::moved(double bytes) {
  due_s_ += bytes / bytes_per_s_;
  if (const double left_s = due_s_ - now_s(); left_s > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(left_s));
}

std::unique_ptr<Engine> make_limited_engine(std::unique_ptr<Engine> inner, double bytes_per_s) {
  return std::make_unique<LimitedEngine>(std::move(inner), bytes_per_s);
}

}  // namespace assay::storage
