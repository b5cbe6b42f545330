// SPDX-License-Identifier: Apache-2.0
#include "results/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "results/reader.hpp"
#include "results/writer.hpp"
#include "tests/results/example_results.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int many = 12;
/// Of an array of a case: 4 rows.
constexpr std::size_t width = 1000, array_bytes = 4 * width * sizeof(double);

template <class F>
void expect_changed(F&& act) {
  try {
    act();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), HasSubstr("has changed"));
  }
}

/// Bit by bit: samples that were not taken are NaN.
bool same(const Held<double>& a, const Held<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

/// A directory of cases whose samples are many times what the cache may hold.
class ValuesInFiles : public ::testing::Test {
 protected:
  ValuesInFiles() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    writer_ = std::make_unique<Writer>(Writer::create(file_, example::start(many), false));
    for (int i = 0; i < many; ++i) {
      CaseBundle bundle = example::bundle(i, 4, width);
      writer_->add_case(bundle);
    }
  }
  ~ValuesInFiles() override {
    writer_.reset();
    fs::remove_all(dir_);
  }

  Results load_by(const std::shared_ptr<ValueCache>& cache) const {
    return load_own_partial(writer_->partial(), cache);
  }

  const fs::path dir_ = fs::temp_directory_path() / ("assay-values-" + std::to_string(::getpid()));
  const fs::path file_ = dir_ / "run.h5";
  std::unique_ptr<Writer> writer_;
};

TEST_F(ValuesInFiles, AreReadWhenTheyAreUsedAndNotKept) {
  const auto cache = std::make_shared<ValueCache>(4 * array_bytes);
  const Results lazy = load_by(cache);
  EXPECT_EQ(cache->bytes_read(), 0U);
  ASSERT_EQ(lazy.cases.size(), static_cast<std::size_t>(many));
  std::size_t large = 0;
  for (const CaseData& c : lazy.cases) {
    if (c.t.empty()) continue;
    EXPECT_TRUE(c.t.in_file()) << c.path();
    for (const Metric& m : c.metrics) large += m.values.in_file() ? 1 : 0;
    EXPECT_EQ(c.t.held().size(), c.entities() * c.samples());
    for (const Metric& m : c.metrics) EXPECT_EQ(m.values.held().size(), m.values.size());
    EXPECT_LE(cache->bytes(), 4 * array_bytes);
  }
  EXPECT_GT(large, 8U);
  EXPECT_GT(cache->bytes_read(), 10 * array_bytes);
  EXPECT_EQ(example::difference(lazy, load(writer_->partial())), "");
}

TEST_F(ValuesInFiles, StayValidWhileTheyAreHeld) {
  const auto cache = std::make_shared<ValueCache>(1);
  const Results lazy = load_by(cache), whole = load(writer_->partial());
  std::vector<Held<double>> held;
  for (const CaseData& c : lazy.cases)
    for (const Metric& m : c.metrics) held.push_back(m.values.held());
  EXPECT_LE(cache->bytes(), 3 * array_bytes) << "three arrays, however large";
  std::size_t at = 0;
  for (const CaseData& c : whole.cases)
    for (const Metric& m : c.metrics) EXPECT_TRUE(same(held[at++], m.values.held())) << m.name;
}

TEST_F(ValuesInFiles, AreReadByManyThreads) {
  const auto cache = std::make_shared<ValueCache>(2 * array_bytes);
  const Results lazy = load_by(cache), whole = load(writer_->partial());
  std::vector<int> differ(4);
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < differ.size(); ++n)
    threads.emplace_back([&, n] {
      for (std::size_t i = 0; i < lazy.cases.size(); ++i) {
        const std::size_t at = n % 2 == 0 ? i : lazy.cases.size() - 1 - i;
        differ[n] += same(lazy.cases[at].t.held(), whole.cases[at].t.held()) ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differ, std::vector<int>(4, 0));
}

TEST_F(ValuesInFiles, OfAFileThatIsCutAreAnError) {
  const Results lazy = load_by(std::make_shared<ValueCache>(1));
  for (const auto& entry : fs::directory_iterator(writer_->partial() / "cases"))
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  const auto large =
      std::find_if(lazy.cases.begin(), lazy.cases.end(), [](const CaseData& c) { return c.t.in_file(); });
  ASSERT_NE(large, lazy.cases.end());
  expect_changed([&] { large->t.held(); });
  expect_changed([&] { writer_->finish(lazy, example::verdict(many)); });
  EXPECT_FALSE(fs::exists(file_));
  writer_.reset();
  EXPECT_TRUE(fs::exists(file_.string() + ".partial")) << "everything measured is kept";
}

TEST_F(ValuesInFiles, ThatAreChangedAreInMemory) {
  Results lazy = load_by(std::make_shared<ValueCache>(1));
  Values<double>& t = lazy.cases[0].t;
  ASSERT_TRUE(t.in_file());
  const double second = t[1];
  t[0] = -1;
  EXPECT_FALSE(t.in_file());
  EXPECT_EQ(t[0], -1);
  EXPECT_EQ(t[1], second);
}

TEST_F(ValuesInFiles, AreMergedOneCaseAfterTheOther) {
  const auto cache = std::make_shared<ValueCache>(3 * array_bytes);
  Results lazy = load_by(cache);
  lazy.info.state = "complete";
  const auto verdict = example::verdict(many);
  writer_->finish(lazy, verdict);
  EXPECT_LE(cache->bytes(), 3 * array_bytes);
  EXPECT_GT(lazy.cases[0].t[0], -1) << "the directory is there until the writer ends";
  Results expected = load(writer_->partial());
  EXPECT_EQ(example::difference(expected, load(file_)), "");
  writer_.reset();
  EXPECT_FALSE(fs::exists(file_.string() + ".partial"));
}

}  // namespace
}  // namespace assay::results
