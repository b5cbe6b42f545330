// SPDX-License-Identifier: Apache-2.0
#include "config/fault_spec.hpp"

#include "base/random.hpp"
#include "config/config.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using testing::HasSubstr;

std::string failure(const std::string& text) {
  return usage_message([&] { parse_fault(text); });
}

bool hits(const std::string& text, int rank, const std::string& node = "node0", int node_index = 0,
          int device = 0) {
  return parse_fault(text).hits_rank(rank, node, node_index, device);
}

TEST(FaultSpec, ReadsEveryKind) {
  for (const char* text :
       {"slow:factor=0.5", "stall:seconds=20ms,duty=0.1", "bitflip:target=memory,word=7,bit=3,step=2",
        "nan:target=allreduce,word=0", "drop", "drop:rank=1,duty=0.5", "slowlink:pair=0>1,factor=0.25",
        "hang", "crash:rank=2,step=4", "exit:code=7", "throw:case=fp32-*", "diskfull:after_bytes=64KiB",
        "nomem:node=1", "clock:ppm=100", "clock:offset_s=-0.5,rank=3"}) {
    const FaultSpec fault = parse_fault(text);
    EXPECT_EQ(fault.text, text);
    EXPECT_EQ(std::string(text).find(to_string(fault.kind)), 0u) << text;
  }
}

TEST(FaultSpec, ReadsEveryValue) {
  const FaultSpec slow =
      parse_fault("slow:factor=0.25,duty=0.5,step=3,after=2m,seed=9,suite=gemm,case=fp32-*,metric=t*");
  EXPECT_DOUBLE_EQ(slow.factor, 0.25);
  EXPECT_DOUBLE_EQ(slow.duty, 0.5);
  EXPECT_EQ(slow.step, 3u);
  EXPECT_DOUBLE_EQ(slow.after_s, 120);
  EXPECT_EQ(slow.seed, 9u);
  EXPECT_EQ(slow.metric, "t*");
  EXPECT_DOUBLE_EQ(parse_fault("stall:seconds=20ms").seconds, 0.02);
  const FaultSpec flip = parse_fault("bitflip:target=gemm,word=18446744073709551615,bit=63");
  EXPECT_EQ(flip.target, "gemm");
  EXPECT_EQ(flip.word, ~std::uint64_t{0});
  EXPECT_EQ(flip.bit, 63u);
  EXPECT_FALSE(parse_fault("bitflip:target=gemm").word.has_value());
  const FaultSpec link = parse_fault("slowlink:pair=3>12,factor=0.1");
  EXPECT_EQ(link.pair_source, 3);
  EXPECT_EQ(link.pair_destination, 12);
  EXPECT_EQ(parse_fault("exit:code=200").exit_code, 200);
  EXPECT_EQ(parse_fault("diskfull:after_bytes=2kB").after_bytes, 2000u);
  EXPECT_DOUBLE_EQ(parse_fault("clock:ppm=-12.5").clock_ppm, -12.5);
  EXPECT_DOUBLE_EQ(parse_fault("clock:offset_s=1e-3").clock_offset_s, 1e-3);
}

TEST(FaultSpec, RanksAreListsAndRanges) {
  for (int rank = 0; rank < 12; ++rank) {
    EXPECT_TRUE(hits("hang", rank));
    EXPECT_EQ(hits("hang:rank=3", rank), rank == 3);
    EXPECT_EQ(hits("hang:rank=1+4", rank), rank == 1 || rank == 4);
    EXPECT_EQ(hits("hang:rank=2-5", rank), rank >= 2 && rank <= 5);
    EXPECT_EQ(hits("hang:rank=2-5+9", rank), (rank >= 2 && rank <= 5) || rank == 9);
  }
}

TEST(FaultSpec, AllSelectorsOfAPlaceMustMatch) {
  EXPECT_TRUE(hits("hang:node=node0,device=1", 7, "node0", 0, 1));
  EXPECT_FALSE(hits("hang:node=node0,device=1", 7, "node0", 0, 0));
  EXPECT_FALSE(hits("hang:node=node0,device=1", 7, "node1", 1, 1));
  EXPECT_TRUE(hits("hang:node=gpu*+3", 0, "gpu07", 1));
  EXPECT_TRUE(hits("hang:node=gpu*+3", 0, "cpu07", 3));
  EXPECT_FALSE(hits("hang:node=gpu*+3", 0, "cpu07", 4));
  EXPECT_TRUE(hits("hang:node=2-5+9", 0, "cpu07", 4));
  EXPECT_FALSE(hits("hang:node=2-5+9", 0, "cpu07", 6));
  EXPECT_TRUE(hits("hang:node=10-0-0-5", 0, "10-0-0-5", 3));
  EXPECT_TRUE(hits("slowlink:pair=0>1,factor=0.5", 1));
  EXPECT_FALSE(hits("slowlink:pair=0>1,factor=0.5", 0));
  EXPECT_TRUE(hits("diskfull", 0));
  EXPECT_FALSE(hits("diskfull", 1));
}

TEST(FaultSpec, CasesAreGlobs) {
  const FaultSpec fault = parse_fault("slow:factor=0.5,suite=gemm,case=fp[36]?-n*-alone");
  EXPECT_TRUE(fault.hits_case("gemm", "fp32-n1024-alone"));
  EXPECT_FALSE(fault.hits_case("gemm", "fp32-n1024-together"));
  EXPECT_FALSE(fault.hits_case("memory", "fp32-n1024-alone"));
  EXPECT_TRUE(parse_fault("hang:case=gemm/*").hits_case("gemm", "fp32-n1024-alone"));
  EXPECT_FALSE(parse_fault("hang:case=gemm/*").hits_case("memory", "triad-alone"));
}

TEST(FaultSpec, NamesWhatIsWrong) {
  EXPECT_THAT(failure("slwo:factor=0.5"), names({"slwo", "slow", "stall", "clock"}));
  EXPECT_THAT(failure(""), HasSubstr("no fault ''"));
  EXPECT_THAT(failure("slow:factr=0.5"), names({"slow", "'factr'", "factor", "duty", "seed"}));
  EXPECT_THAT(failure("slow:"), HasSubstr("slow has no key '' (keys: "));
  EXPECT_THAT(failure("diskfull:rank=1"), names({"diskfull", "'rank'", "after_bytes"}));
  EXPECT_THAT(failure("slow:rank=1"), names({"slow:rank=1", "factor="}));
  EXPECT_THAT(failure("bitflip"), names({"bitflip", "target="}));
  EXPECT_THAT(failure("nan:word=1"), names({"nan:word=1", "target="}));
  EXPECT_THAT(failure("slowlink:factor=0.5"), names({"slowlink:factor=0.5", "pair="}));
  EXPECT_THAT(failure("clock"), names({"clock", "ppm=", "offset_s="}));
  EXPECT_THAT(failure("slow:factor=0.5,factor=0.6"),
              names({"factor", "twice", "'slow:factor=0.5,factor=0.6'"}));
  EXPECT_THAT(failure("slow:factor"), names({"value", "'slow:factor'"}));
  EXPECT_THAT(failure("slow:factor="), names({"value", "'slow:factor='"}));
  EXPECT_THAT(failure("hang\n"), HasSubstr("control character"));
}

TEST(FaultSpec, NamesValuesOutOfRange) {
  EXPECT_THAT(failure("slow:factor=1"), names({"factor=1:", "between 0 and 1"}));
  for (const char* factor : {"0", "-0.5", "1.5"})
    EXPECT_THAT(failure(std::string("slow:factor=") + factor), HasSubstr("must be between 0 and 1"));
  for (const char* factor : {"nan", "inf", "half", "0.5x", "1e999"})
    EXPECT_THAT(failure(std::string("slow:factor=") + factor), HasSubstr("factor="));
  EXPECT_THAT(failure("drop:duty=0"), names({"duty=0:", "1"}));
  EXPECT_THAT(failure("hang:rank=one"), names({"rank=one:", "number"}));
  for (const char* rank : {"-1", "5-2", "1-", "-", "1--2", "1+", "+", "1-2-3", "99999999999999999999", "1.5"})
    EXPECT_THAT(failure(std::string("hang:rank=") + rank), HasSubstr("rank=")) << rank;
  EXPECT_THAT(failure("hang:node=5-2"), names({"node=5-2:", "1+4", "2-5"}));
  EXPECT_THAT(failure("hang:rank=5-2"), names({"rank=5-2:", "1+4", "2-5"}));
  EXPECT_THAT(failure("bitflip:target=gemm,bit=64"), names({"bit=64:", "0 to 63"}));
  EXPECT_THAT(failure("hang:step=-1"), names({"step=-1:", "number"}));
  EXPECT_THAT(failure("exit:code=256"), names({"code=256:", "0 to 255"}));
  EXPECT_THAT(failure("slowlink:factor=0.5,pair=1"), names({"pair=1:", "SRC>DST"}));
  EXPECT_THAT(failure("slowlink:factor=0.5,pair=1>1"), names({"pair=1>1:", "itself"}));
  EXPECT_THAT(failure("stall:seconds=soon"), HasSubstr("seconds=soon: "));
  EXPECT_THAT(failure("stall:seconds=-1"), HasSubstr("seconds=-1: "));
  EXPECT_THAT(failure("stall:seconds=25h"), names({"seconds=25h:", "day"}));
  EXPECT_THAT(failure("diskfull:after_bytes=-1"), HasSubstr("after_bytes=-1: "));
  EXPECT_THAT(failure("clock:ppm=fast"), names({"ppm=fast:", "number"}));
}

TEST(FaultSpec, WhateverIsTypedIsReadOrNamedInOneLine) {
  const std::vector<std::string> seeds = {
      "slow:factor=0.5,duty=0.1,step=3,after=2m,seed=9,suite=gemm,case=fp32-*",
      "bitflip:target=memory,word=7,bit=3",
      "slowlink:pair=0>1,factor=0.25",
      "exit:code=7,rank=1+4+2-5,node=a*+3",
      "diskfull:after_bytes=64KiB",
      "clock:ppm=1e3,offset_s=-0.5"};
  const std::string alphabet = ":=,+->*0123456789.eE \n\t\x7f\xff" + std::string(1, '\0') + "rank";
  const RandomStream random(1, "mutations");
  std::uint64_t draw = 0;
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.below(draw++, n)); };
  int read = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      const std::size_t at = below(text.size());
      if (below(3) == 0) {
        text.erase(at, 1 + below(3));
      } else if (below(2) == 0) {
        text[at] = alphabet[below(alphabet.size())];
      } else {
        text.insert(at, text.substr(below(text.size()), below(6)));
      }
      if (text.empty()) text = "x";
    }
    try {
      const FaultSpec fault = parse_fault(text);
      fault.hits_rank(3, "node3", 3, 0);
      fault.hits_case("gemm", "fp32-n1024-alone");
      ++read;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::usage) << text;
      ASSERT_EQ(std::string(e.what()).find('\n'), std::string::npos) << text;
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_LT(read, 40000);
}

OptionValues values_of(const std::vector<std::string>& faults) {
  OptionValues values;
  for (const OptionSpec& spec : run_options())
    values.set(spec, spec.name == "inject" ? faults : std::vector<std::string>{});
  return values;
}

TEST(FaultSpec, TheOptionMayBeRepeatedAndIsEchoed) {
  const Config config = make_config(values_of({"hang:rank=1", "drop:case=a*,rank=2"}), {"gemm"}, {});
  ASSERT_EQ(config.faults.size(), 2u);
  EXPECT_EQ(config.faults[1].text, "drop:case=a*,rank=2");
  EXPECT_EQ(config.to_json(false).at("inject"), Json({"hang:rank=1", "drop:case=a*,rank=2"}));
  EXPECT_NE(config.to_json(true), make_config(values_of({}), {"gemm"}, {}).to_json(true));
  EXPECT_TRUE(make_config(values_of({}), {"gemm"}, {}).faults.empty());
}

TEST(FaultSpec, TheOptionNamesItself) {
  EXPECT_THAT(usage_message([] {
                make_config(values_of({"hang", "drop:pair=1"}), {"gemm"}, {});
              }),
              names({"--inject: drop", "'pair'", "duty"}));
}

}  // namespace
}  // namespace assay
