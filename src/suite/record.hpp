// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay {

/// The record of one rank about one case. The runner joins the records into a results::CaseBundle.
/// An entity is reported by one rank only.
class CaseRecord {
 public:
  using MetricSpec = results::MetricSpec;
  struct Row {
    int entity = -1;                    ///< row of the EntityTable, or -1 for a link
    int source = -1, destination = -1;  ///< links: rows of the EntityTable
    std::string server;                 ///< links to storage: the name of the server instead of `destination`
    std::vector<double> t;              ///< start of each sample, seconds since run start
    std::vector<std::int32_t> block;
    std::map<std::string, std::vector<double>> values;  ///< per metric: one per sample, or exactly one
    std::map<std::string, std::vector<std::uint64_t>> integers;  ///< per array, flat
  };

  /// Declares a metric; every rank that reports rows declares the same ones in the same order.
  /// The result may be adjusted to the device (role) or to the ranks that share it.
  MetricSpec& declare(const MetricSpec& spec);
  /// Declares an integer array [entity, dims...]; `dims` and `shape` without the entity dimension.
  void declare_integers(const std::string& name, std::vector<std::string> dims,
                        std::vector<std::size_t> shape);
  Row& add_row(int entity);
  Row& add_link(int source, int destination);
  /// Between a part and a server of storage, which becomes a row of /entities with its first link.
  Row& add_link(int source, const std::string& server);

  /// A wrong value: the case becomes `fail`. `count` counts all of them, records are kept up to 1000 a rank
  /// and case.
  void miscompare(const results::Miscompare& record, std::uint64_t count = 1);
  std::uint64_t miscompares() const noexcept { return miscompares_; }
  void set_state(results::CaseState state, const std::string& reason);  ///< keeps the worse one
  void event(const std::string& kind, const std::string& text, int entity = -1);
  /// An event that becomes a finding: severity `warn`, `inconclusive` or `fail`, kind of the finding.
  void launch_event(const std::string& severity, const std::string& finding, const std::string& text,
                    int entity = -1);
  void selftest(const results::SelftestRow& row) { selftest_.push_back(row); }
  void parameter(const std::string& key, const Json& value) { parameters_[key] = value; }
  void add_time(double warmup_s, double timed_s, double verify_s);

  std::string serialize() const;  ///< CBOR
  static CaseRecord deserialize(const std::string& text);

  std::vector<MetricSpec> metrics_;
  struct ArraySpec {
    std::string name;
    std::vector<std::string> dims;
    std::vector<std::size_t> shape;
  };
  std::vector<ArraySpec> arrays_;
  std::vector<Row> rows_;
  std::vector<results::Miscompare> records_;
  std::vector<results::SelftestRow> selftest_;
  std::vector<results::EventRow> events_;
  Json parameters_ = Json::object();  ///< found at run time (k, algorithm); rank 0's win
  std::uint64_t miscompares_ = 0;
  results::CaseState state_ = results::CaseState::pass;
  std::string reason_;
  double warmup_s_ = 0, timed_s_ = 0, verify_s_ = 0, wall_s_ = 0;
  double core_share_ = results::not_taken;  ///< of this rank during the case, see CoreShare
};

}  // namespace assay
