// SPDX-License-Identifier: Apache-2.0
// Clients and servers of storage: a matrix of made rates, measured again where the verdict asks for it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/retest/retest.hpp"

namespace assay {
namespace {

using namespace fabricate;

/// Spreads of healthy parts, pairs and samples as fractions; one sample of twenty is short by up to 60 %.
struct Made {
  int clients = 8, servers = 8;
  double part = 0.02, pair = 0.02, sample = 0.05;
  double percent = 0;  ///< that the slow one lacks: server 2, client 1, or, where both are set, their pair
  int slow_server = -1, slow_client = -1;
  int slow_servers = 1;  ///< from `slow_server` on
};

class Matrix {
 public:
  Matrix(const Made& made, unsigned seed) : made_(made), random_(seed) {
    results_ = cluster(made.clients);
    clients_ = rows_of_kind(results_, "node");
    for (int s = 0; s < made.servers; ++s) {
      servers_.push_back(static_cast<std::int32_t>(results_.entities.size()));
      const std::string name = "server:OST" + std::to_string(s);
      results_.entities.push_back({"server", name, "path", name, 0, -1});
    }
    for (std::size_t i = 0; i < results_.entities.size(); ++i) effect_.push_back(normal(made.part));
    screen();
  }

  results::VerdictData judged() {
    simulate::run_retests(results_, verdict::options_from(results_),
                          [&](const verdict::Retest& r) { return again(r); });
    return judge(results_);
  }

 private:
  struct Cell {
    int round;
    std::int32_t client, server;
  };

  double normal(double sd) { return std::normal_distribution<double>(0, sd)(random_); }

  double rate(std::int32_t client, std::int32_t server) {
    const auto [it, fresh] = pair_.try_emplace({client, server}, 0.0);
    if (fresh) it->second = normal(made_.pair);
    double log_rate = effect_[static_cast<std::size_t>(client)] + effect_[static_cast<std::size_t>(server)] +
                      it->second + normal(made_.sample);
    const bool of_server = made_.slow_server >= 0, of_client = made_.slow_client >= 0;
    if ((of_server || of_client) &&
        (!of_server ||
         (server >= servers_[static_cast<std::size_t>(made_.slow_server)] &&
          server < servers_[static_cast<std::size_t>(made_.slow_server)] + made_.slow_servers)) &&
        (!of_client || client == clients_[static_cast<std::size_t>(made_.slow_client)]))
      log_rate += std::log(1 - made_.percent / 100);
    if (std::uniform_real_distribution<>(0, 1)(random_) < 0.05)
      log_rate += std::log(std::uniform_real_distribution<>(0.4, 1)(random_));
    return 1e9 * std::exp(log_rate);
  }

  std::int32_t link(std::int32_t a, std::int32_t b) {
    const auto [it, fresh] = links_.try_emplace({a, b}, static_cast<std::int32_t>(results_.entities.size()));
    if (fresh) {
      const auto name = [&](std::int32_t row) {
        return results_.entities[static_cast<std::size_t>(row)].name;
      };
      const std::string text = name(a) + ">" + name(b);
      results_.entities.push_back({"link", text, "path", text, 0, -1});
    }
    return it->second;
  }

  void measure(const std::string& name, const std::vector<Cell>& cells, int samples) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<int>> rounds;
    for (const Cell& c : cells)
      for (int s = 0; s < samples; ++s) rounds[{c.client, c.server}].push_back(c.round);
    std::size_t width = 0;
    for (const auto& [pair, own] : rounds) width = std::max(width, own.size());
    std::vector<std::int32_t> rows;
    for (const auto& [pair, own] : rounds) rows.push_back(link(pair.first, pair.second));
    auto& c = add_case(results_, "storage", name, "write", "B/s", results::Better::higher, "link", rows,
                       std::vector<double>(rows.size(), 1), static_cast<int>(width), false);
    c.stage = "world";
    c.case_key = "servers";
    results::Metric& write = c.metrics.front();
    write.judging = results::Judging{results::MetricClass::storage, 0.1, 1};
    results::Metric round{"round", "count", results::Better::none, false, results::Role::covariate, true, {}};
    write.values.assign(rows.size() * width, results::not_taken);
    round.values = write.values;
    results::Metric read = write;
    read.name = "read";
    std::size_t row = 0;
    for (const auto& [pair, own] : rounds) {
      c.source.push_back(pair.first);
      c.destination.push_back(pair.second);
      c.count[row] = static_cast<std::int32_t>(own.size());
      for (std::size_t s = 0; s < own.size(); ++s) {
        write.values[row * width + s] = rate(pair.first, pair.second);
        read.values[row * width + s] = 1.5 * rate(pair.first, pair.second);
        round.values[row * width + s] = own[s];
      }
      ++row;
    }
    c.metrics.push_back(std::move(read));
    c.metrics.push_back(std::move(round));
  }

  void screen() {
    const int slots = std::max(made_.clients, made_.servers);
    std::vector<Cell> cells;
    for (int round = 0; round < slots; ++round)
      for (int c = 0; c < made_.clients; ++c)
        if (const int s = (c + round) % slots; s < made_.servers)
          cells.push_back(
              {round, clients_[static_cast<std::size_t>(c)], servers_[static_cast<std::size_t>(s)]});
    measure("servers-0", cells, 5);
    add_selftest(results_, "storage");
  }

  bool again(const verdict::Retest& r) {
    std::vector<Cell> cells;
    int round = 0;
    for (const auto& pairs : r.rounds) {
      for (const auto& p : pairs) {
        const bool forth = results_.entities[static_cast<std::size_t>(p.source)].kind == "node";
        EXPECT_NE(forth, results_.entities[static_cast<std::size_t>(p.destination)].kind == "node");
        cells.push_back({round, forth ? p.source : p.destination, forth ? p.destination : p.source});
      }
      ++round;
    }
    if (cells.empty()) return false;
    measure(r.name + ".c" + std::to_string(r.number), cells, 4);
    results_.plan.pop_back();
    return true;
  }

  Made made_;
  std::mt19937 random_;
  results::Results results_;
  std::vector<std::int32_t> clients_, servers_;
  std::vector<double> effect_;
  std::map<std::pair<std::int32_t, std::int32_t>, double> pair_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> links_;
};

std::set<std::string> named(const results::VerdictData& v, bool warnings) {
  std::set<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity == "FAIL" || (warnings && f.severity == "WARN")) names.insert(f.name);
  return names;
}

int runs(int normally, int nightly) { return std::getenv("ASSAY_NIGHTLY") != nullptr ? nightly : normally; }

/// Runs in which `expected` is WARN or FAIL, those in which it is FAIL, and those in which others are.
struct Counts {
  int right = 0, failed = 0, wrong = 0, wrong_fails = 0;
};
Counts count(const Made& made, int seeds, const std::string& expected) {
  Counts out;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto v = Matrix(made, static_cast<unsigned>(seed)).judged();
    const auto all = named(v, true), fails = named(v, false);
    out.right += all.contains(expected) ? 1 : 0;
    out.failed += fails.contains(expected) ? 1 : 0;
    const bool wrong = all.size() > all.count(expected);
    out.wrong += wrong ? 1 : 0;
    out.wrong_fails += fails.size() > fails.count(expected) ? 1 : 0;
    for (const auto& f : v.findings)
      if (wrong && f.severity != "INFO")
        std::cout << "seed " << seed << ": " << f.severity << " " << f.text << "\n";
  }
  std::cout << made.clients << " clients, " << made.servers << " servers: named " << out.right << ", FAIL "
            << out.failed << ", others " << out.wrong << " of " << seeds << "\n";
  return out;
}

TEST(VerdictServers, ASlowServerIsNamed) {
  Made made;
  made.clients = made.servers = 16;
  made.percent = 35;
  made.slow_server = 2;
  const auto v = Matrix(made, 1).judged();
  ASSERT_FALSE(v.findings.empty());
  const auto& f = v.findings.front();
  EXPECT_EQ(f.severity + " " + f.level + " " + f.name, "FAIL server server:OST2");
  EXPECT_NE(f.text.find("all its clients slow"), std::string::npos) << f.text;
  EXPECT_NEAR(f.deficit.value_or(0), 0.35, 0.06);
  EXPECT_EQ(v.exit_code, 2);
}

/// Clients and servers; few of them by day.
std::vector<std::pair<int, int>> sizes() {
  if (std::getenv("ASSAY_NIGHTLY") == nullptr) return {{8, 8}, {8, 16}, {32, 32}};
  return {{8, 8}, {16, 8}, {8, 16}, {32, 32}, {64, 8}, {8, 64}, {64, 64}};
}

void expect_named(Made made, const std::string& name) {
  for (const auto& [clients, servers] : sizes()) {
    made.clients = clients;
    made.servers = servers;
    const int n = runs(20, 200);
    const auto c = count(made, n, name);
    EXPECT_GE(c.right, runs(18, 190));
    // Of healthy clients and servers at most one in a thousand; they are WARN only.
    EXPECT_LE(c.wrong, std::max(1, n * (clients + servers - 1) / 1000));
    EXPECT_EQ(c.wrong_fails, 0);
  }
}

TEST(VerdictServers, AServerSlowByAFifthIsNamed) {
  Made made;
  made.percent = 20;
  made.slow_server = 2;
  expect_named(made, "server:OST2");
}

TEST(VerdictServers, AClientSlowByAFifthIsNamed) {
  Made made;
  made.percent = 20;
  made.slow_client = 1;
  expect_named(made, "node1");
}

TEST(VerdictServers, APairSlowByThreeTenthsIsNamed) {
  Made made;
  made.percent = 30;
  made.slow_client = 1;
  made.slow_server = 2;
  expect_named(made, "node1>server:OST2");
}

/// Server-runs: at most one in a thousand.
TEST(VerdictServers, HealthyOnesAreNotAccused) {
  int server_runs = 0, wrong = 0;
  for (const auto& [clients, servers] : sizes()) {
    const auto c = count({clients, servers}, runs(25, 300), "");
    EXPECT_EQ(c.wrong_fails, 0);
    server_runs += servers * runs(25, 300);
    wrong += c.wrong;
  }
  std::cout << wrong << " of " << server_runs << " healthy server-runs\n";
  EXPECT_LE(wrong, std::max(2, server_runs / 1000));
}

/// Of two servers either may be as it should be.
TEST(VerdictServers, OfTwoServersNoneIsNamed) {
  Made made{8, 2};
  made.percent = 60;
  made.slow_server = 0;
  for (unsigned seed = 1; seed <= 5; ++seed)
    for (const auto& name : named(Matrix(made, seed).judged(), true))
      EXPECT_FALSE(name.starts_with("server:")) << name;
}

/// Which of them were pairs at fault and which were none was a matter of chance.
TEST(VerdictServers, OfTwoServersThatAreApartBothAreTold) {
  for (const int clients : {2, 4, 8})
    for (const double percent : {60.0, 90.0})
      for (unsigned seed = 1; seed <= 10; ++seed) {
        Made made{clients, 2};
        made.percent = percent;
        made.slow_server = 0;
        const auto v = Matrix(made, seed).judged();
        std::vector<std::string> told;
        for (const auto& f : v.findings)
          if (f.severity != "INFO") told.push_back(f.severity + " " + f.kind + " " + f.text);
        ASSERT_EQ(told.size(), 1U) << clients << " clients, seed " << seed << ": "
                                   << (told.size() > 1 ? told[1] : "");
        EXPECT_TRUE(told[0].starts_with("WARN split cluster: server:OST0 is ")) << told[0];
        EXPECT_NE(told[0].find("slower than server:OST1"), std::string::npos) << told[0];
        EXPECT_EQ(v.exit_code, 3);
      }
}

/// Pairs of some of them were WARN, by less than they lack, or nothing was said.
TEST(VerdictServers, WhereMostAreSlowTheyAreToldTogether) {
  for (const auto& [servers, slow] :
       {std::pair{4, 3}, {4, 2}, {3, 2}, {6, 5}, {8, 6}, {8, 7}, {16, 8}, {16, 15}})
    for (const int clients : {4, 8, 16})
      for (const double percent : {50.0, 90.0})
        for (unsigned seed = 1; seed <= 5; ++seed) {
          Made made{clients, servers};
          made.percent = percent;
          made.slow_server = 0;
          made.slow_servers = slow;
          const auto v = Matrix(made, seed).judged();
          std::vector<const results::Finding*> told;
          for (const auto& f : v.findings)
            if (f.severity != "INFO") told.push_back(&f);
          ASSERT_EQ(told.size(), 1U) << servers << " servers, " << slow << " slow, " << clients
                                     << " clients, seed " << seed;
          EXPECT_EQ(told[0]->kind, "split");
          EXPECT_EQ(told[0]->members.size(), static_cast<std::size_t>(slow) + 1) << told[0]->text;
          EXPECT_NEAR(told[0]->deficit.value_or(0), percent / 100, 0.1) << told[0]->text;
          EXPECT_EQ(v.exit_code, 3);
        }
}

TEST(VerdictServers, TwoThatAreAlikeAreNoSplit) {
  for (const int clients : {2, 4, 8})
    for (unsigned seed = 1; seed <= 20; ++seed)
      for (const auto& f : Matrix({clients, 2}, seed).judged().findings)
        EXPECT_TRUE(f.severity == "INFO" || f.kind != "split") << f.text;
}

}  // namespace
}  // namespace assay
