// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/partner.hpp"
#include "suite/together.hpp"
#include "suites/storage/damage_log.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// What the cases have in common that all ranks of a node, or of the run on a shared path, go through
/// together. `words`: of a file, as far as they are known before it is laid out.
class GroupCase {
 public:
  GroupCase(const Case& c, Context& context, const Site& site, std::uint64_t words = 0)
      : case_(c),
        context_(context),
        site_(site),
        path_(c.parameters.at("path_index").get<std::size_t>()),
        entity_(context.entities.node(context.topology.me().node)),
        group_(c.stage == Stage::node_local ? context.node : context.world),
        log_({site.key, site.files(), 2, words}, entity_, context),
        together_(group_) {}

 protected:
  /// The rank of the group whose files this one reads: on the next node, in a node the next one.
  int partner() const {
    return case_.stage == Stage::node_local ? (group_.rank() + 1) % group_.size()
                                            : partner_on_other_node(context_.topology, group_.rank());
  }

  /// Ranks that use the path at the same time: also those of other nodes, where they see it without the path
  /// having been named as shared.
  int sharers() const { return site_.shared[path_] ? context_.world.size() : group_.size(); }

  const Case& case_;
  Context& context_;
  const Site& site_;
  std::size_t path_;
  int entity_;
  Communicator& group_;
  DamageLog log_;
  Together together_;
};

}  // namespace assay::storage
