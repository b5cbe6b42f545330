// SPDX-License-Identifier: Apache-2.0
// JUnit XML and the metrics for Prometheus: what becomes of findings and of many parts.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "report/report.hpp"
#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

results::Finding about_gpu(const char* severity, const char* reference, double by) {
  results::Finding f;
  f.severity = severity;
  f.kind = "slow";
  f.level = "device";
  f.name = "node1/cores0-1";
  f.suite = "gemm";
  f.metric = "gemm/fp32-n2048-together:throughput";
  f.reference_kind = reference;
  f.deficit = by;
  f.text = std::string("slow by ") + reference;
  return f;
}

TEST(Report, PrometheusTellsReferencesApartAndTheLargestDeficit) {
  const auto r = healthy(4);
  auto v = judge(r);
  v.findings = {about_gpu("FAIL", "limit", 0.3), about_gpu("FAIL", "peers", 0.125),
                about_gpu("FAIL", "peers", 0.25)};
  const auto text = report::verdict_prometheus(r, v);
  const std::string part =
      "\nassay_finding_deficit_ratio{severity=\"FAIL\",name=\"node1/"
      "cores0-1\",node=\"node1\",device=\"cores0-1\","
      "suite=\"gemm\",metric=\"gemm/fp32-n2048-together:throughput\",kind=\"slow\",reference=";
  EXPECT_THAT(text, HasSubstr(part + "\"limit\"} 0.3\n"));
  EXPECT_THAT(text, HasSubstr(part + "\"peers\"} 0.25\n"));
}

TEST(Report, PrometheusCountsPartsThatWereMeasured) {
  auto r = healthy(4);
  for (int i = 0; i < 2000; ++i)
    r.entities.push_back({"dimm", "", "path", "node0/D" + std::to_string(i), row_named(r, "node0"), -1});
  const auto text = report::verdict_prometheus(r, judge(r));
  EXPECT_THAT(text, Not(HasSubstr("left_out")));
  EXPECT_THAT(text, HasSubstr("\nassay_node_state{node=\"node3\",state=\"FAIL\"} 0\n"));
}

TEST(Report, JunitHoldsWarnings) {
  auto r = healthy(4);
  auto v = judge(r);
  v.findings = {about_gpu("WARN", "peers", 0.04), about_gpu("INFO", "baseline", 0.01)};
  v.state = "WARN";
  const std::string of_part = "<testcase classname=\"gemm\" name=\"node1/cores0-1\">",
                    run = "name=\"run\" tests=\"1\" ";
  auto xml = report::verdict_junit(r, v);
  EXPECT_THAT(xml, HasSubstr(of_part + "<system-out>slow by peers&#10;</system-out></testcase>"));
  EXPECT_THAT(xml, HasSubstr(run + "failures=\"0\""));
  v.exit_code = 1;
  xml = report::verdict_junit(r, v);
  EXPECT_THAT(xml, HasSubstr(run + "failures=\"1\""));
  EXPECT_THAT(xml, HasSubstr("name=\"verdict\"><failure type=\"strict\" message=\"WARN with --strict\"/>"));
  // Readers show the failure alone.
  v.findings.push_back(about_gpu("FAIL", "limit", 0.3));
  v.state = "FAIL";
  v.exit_code = 2;
  xml = report::verdict_junit(r, v);
  EXPECT_THAT(
      xml, HasSubstr(of_part + "<failure type=\"slow\" message=\"slow by limit\">slow by limit&#10;slow by "
                               "peers&#10;</failure></testcase>"));
}

TEST(Report, JunitHasNodesAndNotTheirPairs) {
  auto r = healthy(4);
  const auto devices = rows_of_kind(r, "device");
  const std::vector<double> values(12, 1e-6);
  auto& c = add_case(r, "p2p", "latency-8", "latency", "s", results::Better::lower, "link",
                     std::vector<std::int32_t>(12, -1), values);
  for (const auto from : devices)
    for (const auto to : devices)
      if (from != to) {
        c.source.push_back(from);
        c.destination.push_back(to);
      }
  c.state = results::CaseState::error;
  results::VerdictData v;
  v.state = "INCONCLUSIVE";
  const auto xml = report::verdict_junit(r, v);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"p2p\" tests=\"4\" failures=\"0\" errors=\"4\""));
  EXPECT_THAT(xml,
              HasSubstr("<testcase classname=\"p2p\" name=\"node3\"><error message=\"p2p/latency-8\"/>"));
}

}  // namespace
}  // namespace assay
