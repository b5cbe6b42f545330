// SPDX-License-Identifier: Apache-2.0
// Simulated fleets night after night, each held against the nights before.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "simulate/simulate.hpp"
#include "verdict/history_level.hpp"
#include "verdict/references.hpp"
#include "verdict/snapshot.hpp"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Nights {
 public:
  Nights(std::int64_t nodes, const std::string& metrics, std::uint64_t seed, double run_cv = 0.003,
         std::int64_t devices = 1, std::int64_t leaves = 0) {
    spec_.nodes = nodes;
    spec_.leaves = leaves;
    spec_.devices_per_node = devices;
    spec_.metrics = simulate::pick_metrics({metrics});
    spec_.run_cv = run_cv;
    spec_.seed = seed;
  }

  /// What the history finds in the next night.
  std::vector<results::Finding> next(const std::string& fault = "") {
    return next(fault.empty() ? std::vector<std::string>{} : std::vector{fault});
  }
  std::vector<results::Finding> next(const std::vector<std::string>& faults) {
    auto found = said(faults);
    std::erase_if(found, [](const auto& f) { return f.severity == "INFO"; });
    return found;
  }

  /// The same with its notes.
  std::vector<results::Finding> said(const std::vector<std::string>& faults = {}) {
    ++night_;
    spec_.run = static_cast<std::uint64_t>(night_);
    spec_.started =
        std::string(night_ < 10 ? "2026-01-0" : "2026-01-") + std::to_string(night_) + "T02:00:00Z";
    spec_.faults.clear();
    for (const auto& fault : faults) spec_.faults.push_back(simulate::parse_fault(fault));
    auto r = simulate::run(spec_);
    r.info.injected = false;  // as nights of a real machine
    auto options = verdict::options_from(r);
    options.earlier = earlier_;
    options.history_name = "history";
    auto found = verdict::judge(r, options).findings;
    std::erase_if(found, [](const auto& f) { return f.reference_kind != "history"; });
    earlier_->push_back(verdict::snapshot_of(r, "night" + std::to_string(night_)));
    return found;
  }

 private:
  simulate::Spec spec_;
  int night_ = 0;
  std::shared_ptr<std::vector<verdict::Snapshot>> earlier_ =
      std::make_shared<std::vector<verdict::Snapshot>>();
};

std::string of_all(std::int64_t nodes, double percent) {
  return "slow:node=0-" + std::to_string(nodes - 1) + ",percent=" + std::to_string(percent);
}

/// The parts named, with those of groups.
std::set<std::string> named(const std::vector<results::Finding>& found) {
  std::set<std::string> names;
  for (const auto& f : found) {
    if (f.level != "cluster") names.insert(f.name);
    names.insert(f.members.begin(), f.members.end());
  }
  return names;
}

std::set<std::string> first_devices(int count) {
  std::set<std::string> names;
  for (int i = 0; i < count; ++i)
    names.insert("sim" + std::string(i < 10 ? "0" : "") + std::to_string(i) + "/gpu0");
  return names;
}

/// A third, half or most of the parts lose speed for good: each is told every night and fails from its second
/// on, and no other part is.
TEST(HistoryNights, ALossOfManyPartsIsToldEachNight) {
  for (const int slow : {5, 8, 11})
    for (const double percent : {8.0, 12.0}) {
      Nights nights(16, "memory", 4);
      const std::string fault = of_all(slow, percent);
      for (int night = 1; night <= 12; ++night) {
        auto found = nights.next(night < 4 ? "" : fault);
        std::erase_if(found, [](const auto& f) { return f.severity != "FAIL"; });
        EXPECT_EQ(named(found), night > 4 ? first_devices(slow) : std::set<std::string>{})
            << slow << " " << percent << " " << night;
      }
    }
}

/// The median change of all parts is then 2 %, which was a drift of the fleet in some nights.
TEST(HistoryNights, ALossOfHalfOfThePartsIsNoDriftOfTheFleet) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Nights nights(16, "memory", seed, 0.001);
    for (int night = 1; night <= 14; ++night) {
      auto found = nights.next(night < 9 ? "" : of_all(8, 3.9));
      std::erase_if(found, [](const auto& f) { return f.severity != "FAIL"; });
      const auto failed = named(found);
      EXPECT_TRUE(std::ranges::includes(first_devices(8), failed)) << seed << " " << night;
      EXPECT_GE(failed.size(), night > 9 ? 6U : 0U) << seed << " " << night;
    }
  }
}

/// With one or two nodes no other part shows that the fleet is slow. At half of the window as many runs are
/// slow as are not.
TEST(HistoryNights, ALossOfAllPartsOfOneOrTwoNodesIsToldEachNight) {
  for (const int nodes : {1, 2})
    for (const int devices : {1, 4})
      for (const double percent : {8.0, 30.0, 99.0}) {
        Nights nights(nodes, "memory", 4, 0.003, devices);
        for (int night = 1; night <= 20; ++night) {
          auto found = nights.next(night <= 8 ? "" : of_all(nodes, percent));
          std::erase_if(found, [](const auto& f) { return f.severity != "FAIL"; });
          EXPECT_EQ(found.empty(), night <= 9) << nodes << " " << devices << " " << percent << " " << night;
        }
      }
}

TEST(HistoryNights, ANoteTellsThatThereAreTooFewValues) {
  Nights nights(1, "memory", 4);
  EXPECT_THAT(nights.said().at(0).text, HasSubstr("no earlier run"));
  for (int night = 2; night <= 8; ++night) {
    const auto said = nights.said();
    ASSERT_THAT(said, SizeIs(1)) << night;
    EXPECT_THAT(said[0].text, HasSubstr("too few values of 12 of 12 metrics to compare parts with"));
  }
  EXPECT_THAT(nights.said(), IsEmpty());
}

/// The median of all parts lies between those that changed and those that did not.
TEST(HistoryNights, ALossOfHalfTheFleetIsToldInItsFirstNight) {
  for (const double percent : {10.0, 30.0})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Nights nights(16, "2", seed, 0.002);
      for (int night = 1; night <= 4; ++night) EXPECT_THAT(nights.next(), IsEmpty());
      EXPECT_EQ(named(nights.next(of_all(8, percent))), first_devices(8)) << percent << " " << seed;
    }
}

TEST(HistoryNights, ALossOfTheFleetBitByBitIsTold) {
  for (const double a_night : {1.0, 2.0})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Nights nights(8, "3", seed, 0.002);
      double lost = 0;
      for (int night = 1; night <= 16; ++night) {
        const auto found = nights.next(lost > 0 ? of_all(8, lost) : "");
        if (lost > 12) {
          ASSERT_THAT(found, SizeIs(1)) << a_night << " " << seed << " " << night;
          EXPECT_EQ(found[0].level, "cluster");
        }
        lost += a_night;
      }
    }
}

/// Runs with a fault that was repaired are more than half of the window, and no level to get used to.
TEST(HistoryNights, AFaultThatComesBackIsToldAgain) {
  for (const int nodes : {1, 2, 12})
    for (const int first : {1, 3}) {
      Nights nights(nodes, "4", 2);
      for (int night = 1; night <= 14; ++night) {
        const bool slow = night >= first && night != 10 && night != 11;
        const auto found = nights.next(slow ? of_all(1, 20) : "");
        if (night == 10 || night == 11) {
          EXPECT_THAT(found, IsEmpty()) << nodes << " " << first;
        }
        if (night < 12) continue;
        ASSERT_EQ(named(found), first_devices(1)) << nodes << " " << first << " " << night;
        EXPECT_EQ(found[0].severity, night > 12 ? "FAIL" : "WARN") << nodes << " " << first << " " << night;
        EXPECT_THAT(found[0].since, HasSubstr("-12T")) << nodes << " " << first << " " << night;
      }
    }
}

TEST(HistoryNights, EndedLossesAreLongAndRare) {
  using Losses = std::vector<std::pair<std::size_t, std::size_t>>;
  const std::vector<double> back{0, 0, -.2, -.2, -.2, -.2, 0, 0, 0, 0, 0, -.2};
  EXPECT_EQ(verdict::ended_losses(back, 0.003), (Losses{{2, 6}}));
  EXPECT_EQ(verdict::ended_losses(back, 0.05), Losses{}) << "noise";
  EXPECT_EQ(verdict::ended_losses(std::vector<double>{0, 0, 0, -.2, -.2, 0, 0, 0}, 0.003), Losses{})
      << "two runs";
  EXPECT_EQ(verdict::ended_losses(std::vector<double>{0, -.1, -.1, -.1, 0, 0, -.1, -.1, -.1, 0, -.1}, 0.003),
            Losses{})
      << "it comes and goes";
}

/// Groups of few nodes have no draws that tell a slow node: the past of the collective is what there is.
TEST(HistoryNights, ALossOfACollectiveIsTold) {
  for (const int nodes : {2, 4, 7}) {
    Nights nights(nodes, "allreduce", 3);
    for (int night = 1; night <= 20; ++night) {
      const auto found = nights.next(night <= 8 ? "" : "slow:node=1,percent=99.9,suite=allreduce");
      ASSERT_THAT(found, SizeIs(night <= 8 ? 0 : 1)) << nodes << " " << night;
      if (night <= 8) continue;
      EXPECT_EQ(found[0].severity, "WARN");
      EXPECT_NEAR(*found[0].deficit, 0.999, 0.001);
      EXPECT_THAT(found[0].since, HasSubstr("-09T"));
    }
    EXPECT_THAT(nights.said(), IsEmpty()) << "no note";
  }
}

/// What a switch takes from the nodes below it is no loss of theirs; what one of them lost besides is.
TEST(HistoryNights, NodesBelowASlowSwitchDidNotDrift) {
  for (const int percent : {6, 8, 20, 50})
    for (const bool slower : {false, true}) {
      Nights nights(16, "p2p", 1, 0.003, 1, 4);
      std::vector<std::string> faults{"slow:leaf=1,percent=" + std::to_string(percent)};
      if (slower) faults.emplace_back("slow:nic=0,node=5,percent=70");
      for (int night = 1; night <= 10; ++night) {
        const auto found = night <= 8 ? nights.next() : nights.next(faults);
        EXPECT_EQ(named(found),
                  night > 8 && slower ? std::set<std::string>{"sim05"} : std::set<std::string>{})
            << percent << " " << night;
      }
    }
}

/// How many of `seeds` faults of `percent` that began in night 6 are said to have begun that many nights
/// later (earlier: negative), in night 10.
std::map<int, int> said_begins(const char* percent, int seeds, int nodes = 12) {
  std::map<int, int> off;
  for (int seed = 1; seed <= seeds; ++seed) {
    Nights nights(nodes, "memory/triad-together", static_cast<std::uint64_t>(seed));
    std::vector<results::Finding> found;
    for (int night = 1; night <= 10; ++night)
      found = nights.next(night < 6 ? "" : std::string("slow:node=1,percent=") + percent);
    for (const auto& f : found)
      if (named({f}) == first_devices(2) || f.name.starts_with("sim01"))
        ++off[std::stoi(f.since.substr(8, 2)) - 6];
  }
  return off;
}

TEST(HistoryNights, ALastingLossIsSaidToBeginWhereItDid) {
  for (const char* percent : {"2", "5", "20", "99.9"}) {
    const auto off = said_begins(percent, 25);
    int all = 0, early = 0, exact = 0;
    std::string table;
    for (const auto& [nights, count] : off) {
      all += count;
      early += nights < 0 ? count : 0;
      exact += nights == 0 ? count : 0;
      table += std::to_string(nights) + ": " + std::to_string(count) + ", ";
    }
    RecordProperty(std::string("begin_") + (percent[0] == '9' ? "99" : percent), table);
    EXPECT_GE(all, percent[0] == '2' && percent[1] == 0 ? 10 : 24) << percent << ": " << table;
    EXPECT_LE(early, 1) << percent << ": " << table;
    EXPECT_GE(exact, all - 2) << percent << ": " << table;
  }
}

/// An update that makes most parts faster is one story of the fleet, and not a loss of each of the others.
TEST(HistoryNights, MostPartsThatGotFasterAreOneFinding) {
  for (const int nodes : {24, 64}) {
    Nights nights(nodes, "memory/triad-together", 5);
    const std::string before = "slow:percent=6,node=0-" + std::to_string(nodes - 1);
    for (int night = 1; night <= 8; ++night) EXPECT_THAT(nights.next(before), IsEmpty()) << nodes;
    const auto found = nights.next("slow:percent=6,node=3+7");
    ASSERT_THAT(found, SizeIs(1)) << nodes;
    EXPECT_EQ(found[0].level, "cluster");
    EXPECT_EQ(found[0].severity, "WARN");
    EXPECT_THAT(found[0].text, HasSubstr("as before: "));
    EXPECT_EQ(named(found).size(), 2U);
    // One that lost speed besides is told.
    const auto lost =
        nights.next(std::vector<std::string>{"slow:percent=6,node=7", "slow:percent=30,node=3"});
    EXPECT_THAT(lost, testing::Contains(testing::Field(&results::Finding::level, "device"))) << nodes;
  }
}

}  // namespace
}  // namespace assay
