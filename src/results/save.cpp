// SPDX-License-Identifier: Apache-2.0
#include "results/save.hpp"

#include "base/error.hpp"
#include "base/system.hpp"
#include "results/writer.hpp"

namespace assay::results {

void save(const Results& results, const std::filesystem::path& file, bool force) {
  Writer::Start start{results.info,        results.config,   results.plan,
                      results.environment, results.entities, results.inventory};
  start.info.state = "running";
  Writer writer = Writer::create(target_of(file), start, force);
  try {
    writer.finish(results);
  } catch (const Error&) {
    writer.discard();
    throw;
  }
}

}  // namespace assay::results
