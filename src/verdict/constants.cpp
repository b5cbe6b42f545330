// SPDX-License-Identifier: Apache-2.0
#include "verdict/constants.hpp"

namespace assay::verdict::constants {

Json as_json() {
  return Json{{"interval_z", interval_z},
              {"interval_min_samples", interval_min_samples},
              {"coarse_deficit", coarse_deficit},
              {"noise_z", noise_z},
              {"noise_limit", noise_limit},
              {"delta_warn", delta_warn},
              {"delta_memory", delta_memory},
              {"delta_nic", delta_nic},
              {"delta_compute_raw", delta_compute_raw},
              {"delta_at_clock", delta_at_clock},
              {"eligible_fraction", eligible_fraction},
              {"alpha_warn", alpha_warn},
              {"alpha_fail", alpha_fail},
              {"alpha_confirm", alpha_confirm},
              {"confirm_degrees", confirm_degrees},
              {"warn_errors", warn_errors},
              {"peers_min_deficit", peers_min_deficit},
              {"peers_spread_floor", peers_spread_floor},
              {"robust_min", robust_min},
              {"peers_min_population", peers_min_population},
              {"deletion_min", deletion_min},
              {"peers_z", peers_z},
              {"real_least", real_least},
              {"combined_share", combined_share},
              {"clock_min_population", clock_min_population},
              {"clock_max_error", clock_max_error},
              {"group_min", group_min},
              {"group_sigmas", group_sigmas},
              {"split_distance", split_distance},
              {"explain_p", explain_p},
              {"split_minority", split_minority},
              {"confirm_controls", confirm_controls},
              {"confirm_control_fraction", confirm_control_fraction},
              {"confirm_most_controls", confirm_most_controls},
              {"confirm_samples", confirm_samples},
              {"confirm_most_samples", confirm_most_samples},
              {"confirm_split_members", confirm_split_members},
              {"confirm_most_cases", confirm_most_cases},
              {"confirm_most_candidates", confirm_most_candidates},
              {"dip", dip},
              {"dips_min", dips_min},
              {"dips_min_samples", dips_min_samples},
              {"dips_factor", dips_factor},
              {"lasting_blocks", lasting_blocks},
              {"lasting_s", lasting_s},
              {"peers_small_deficit", peers_small_deficit},
              {"peers_note_deficit", peers_note_deficit},
              {"peers_small_samples", peers_small_samples},
              {"assumed_spread", assumed_spread},
              {"peers_shared_deficit", peers_shared_deficit},
              {"memory_floor_fraction", memory_floor_fraction},
              {"nic_floor_fraction", nic_floor_fraction},
              {"nic_floor_min_bytes", nic_floor_min_bytes},
              {"population_min", population_min},
              {"list_members", list_members},
              {"inventory_tolerance", inventory_tolerance},
              {"majority_min", majority_min},
              {"split_fraction", split_fraction},
              {"split_min", split_min}};
}

Json deltas() {
  return Json{{"warn", delta_warn},          {"memory", delta_memory},          {"pcie", delta_memory},
              {"nvlink", delta_memory},      {"nic_pair", delta_nic},           {"gemm_raw", delta_compute_raw},
              {"gemm_at_clock", delta_at_clock}, {"train", delta_compute_raw}};
}

}  // namespace assay::verdict::constants
