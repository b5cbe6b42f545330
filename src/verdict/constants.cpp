// SPDX-License-Identifier: Apache-2.0
#include "verdict/constants.hpp"

namespace assay::verdict::constants {
namespace {

Json of_magnitude() {
  return Json{{"possible_most", possible_most},
              {"possible_least", possible_least},
              {"interval_z", interval_z},
              {"interval_min_samples", interval_min_samples},
              {"coarse_deficit", coarse_deficit},
              {"gross_deviations", gross_deviations},
              {"gross_deficit", gross_deficit},
              {"noise_z", noise_z},
              {"noise_limit", noise_limit},
              {"noise_of_peers", noise_of_peers},
              {"delta_warn", delta_warn},
              {"delta_notice", delta_notice},
              {"delta_memory", delta_memory},
              {"delta_nic", delta_nic},
              {"delta_compute_raw", delta_compute_raw},
              {"delta_at_clock", delta_at_clock},
              {"eligible_fraction", eligible_fraction},
              {"alpha_warn", alpha_warn},
              {"alpha_warn_heavy", alpha_warn_heavy},
              {"alpha_fail", alpha_fail},
              {"alpha_confirm", alpha_retest},
              {"confirm_degrees", retest_degrees},
              {"confirm_degrees_per_entity", retest_degrees_per_entity},
              {"narrow_spread", narrow_spread},
              {"wide_share", wide_share},
              {"warn_errors", warn_errors},
              {"warn_errors_noisy", warn_errors_noisy}};
}

Json of_peers() {
  return Json{{"peers_min_deficit", peers_min_deficit},
              {"peers_spread_floor", peers_spread_floor},
              {"robust_min", robust_min},
              {"peers_min_population", peers_min_population},
              {"deletion_min", deletion_min},
              {"deletion_most", deletion_most},
              {"peers_z", peers_z},
              {"real_least", real_least},
              {"real_enough", real_enough},
              {"combined_share", combined_share},
              {"joint_share", joint_share},
              {"throttled_share", throttled_share},
              {"node_share", node_share},
              {"nested_share", nested_share},
              {"difference_peak", difference_peak},
              {"alike_errors", alike_errors},
              {"light_delta", light_delta},
              {"heavy_delta", heavy_delta},
              {"story_metrics", story_metrics},
              {"story_degrees", story_degrees},
              {"spread_metrics", spread_metrics},
              {"clock_min_population", clock_min_population},
              {"clock_max_error", clock_max_error},
              {"clock_reach", clock_reach},
              {"clock_slope_doubt", clock_slope_doubt},
              {"group_min", group_min},
              {"group_sigmas", group_sigmas},
              {"split_distance", split_distance},
              {"split_distance_few", split_distance_few},
              {"explain_p", explain_p},
              {"explain_place_p", explain_place_p},
              {"split_minority", split_minority},
              {"kind_most_deficit", kind_most_deficit},
              {"kind_gross_deficit", kind_gross_deficit},
              {"level_gross_deficit", level_gross_deficit},
              {"level_few_deficit", level_few_deficit},
              {"level_few_single", level_few_single},
              {"spread_warn", spread_warn},
              {"kind_most_usual", kind_most_usual},
              {"kind_always", kind_always},
              {"kind_share_small", kind_share_small}};
}

Json of_retests_and_time() {
  return Json{{"confirm_controls", retest_controls},
              {"confirm_control_fraction", retest_control_fraction},
              {"confirm_most_controls", retest_most_controls},
              {"confirm_samples", retest_samples},
              {"confirm_most_samples", retest_most_samples},
              {"confirm_most_cases", retest_most_cases},
              {"confirm_most_candidates", retest_most_candidates},
              {"dip", dip},
              {"dips_min", dips_min},
              {"dips_min_samples", dips_min_samples},
              {"dips_few_samples", dips_few_samples},
              {"dips_few_share", dips_few_share},
              {"dips_min_links", dips_min_links},
              {"dips_factor", dips_factor},
              {"delta_drift", delta_drift},
              {"drift_least_samples", drift_least_samples},
              {"drift_least_s", drift_least_s},
              {"drift_stretches", drift_stretches},
              {"drift_least_times", drift_least_times},
              {"drift_common_case", drift_common_case},
              {"drift_common_files", drift_common_files},
              {"drift_common_deviations", drift_common_deviations},
              {"lasting_blocks", lasting_blocks},
              {"lasting_s", lasting_s},
              {"lasting_error", lasting_error},
              {"lasting_share", lasting_share}};
}

Json of_few_peers_and_parts() {
  return Json{{"peers_small_deficit", peers_small_deficit},
              {"peers_open_deficit", peers_open_deficit},
              {"peers_note_deficit", peers_note_deficit},
              {"peers_small_samples", peers_small_samples},
              {"agreeing_cases", agreeing_cases},
              {"agreeing_share", agreeing_share},
              {"assumed_spread", assumed_spread},
              {"peers_shared_deficit", peers_shared_deficit},
              {"peers_shared_most", peers_shared_most},
              {"core_share_least", core_share_least},
              {"core_share_part", core_share_part},
              {"in_step_ranks", in_step_ranks},
              {"in_step_screened", in_step_screened},
              {"in_step_samples", in_step_samples},
              {"in_step_share", in_step_share},
              {"in_step_alpha", in_step_alpha},
              {"late_arrival", late_arrival},
              {"late_least", late_least},
              {"memory_floor_fraction", memory_floor_fraction},
              {"nic_floor_fraction", nic_floor_fraction},
              {"storage_floor_fraction", storage_floor_fraction},
              {"tcp_stream_rate", tcp_stream_rate},
              {"nic_floor_min_bytes", nic_floor_min_bytes},
              {"population_min", population_min},
              {"one_sm_places", one_sm_places},
              {"one_sm_place_bytes", one_sm_place_bytes},
              {"pattern_efficiency", pattern_efficiency},
              {"pattern_chunk_bytes", pattern_chunk_bytes},
              {"list_members", list_members},
              {"nic_rate_share", nic_rate_share},
              {"shared_end_partners", shared_end_partners},
              {"shared_end_share", shared_end_share},
              {"shared_end_most", shared_end_most},
              {"inventory_tolerance", inventory_tolerance},
              {"gpu_corrected_per_hour", gpu_corrected_per_hour},
              {"gpu_replays_per_hour", gpu_replays_per_hour},
              {"gpu_link_errors_per_hour", gpu_link_errors_per_hour},
              {"gpu_few_events", gpu_few_events},
              {"majority_min", majority_min},
              {"split_fraction", split_fraction},
              {"split_min", split_min},
              {"fleet_min_nodes", fleet_min_nodes}};
}

}  // namespace

Json as_json() {
  Json all;
  for (auto* group : {of_magnitude, of_peers, of_retests_and_time, of_few_peers_and_parts})
    all.update(group());
  return all;
}

}  // namespace assay::verdict::constants
