// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_worker.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "transport/ucx_path.hpp"

namespace assay::ucx {

std::string what(ucs_status_t status, const std::string& call) {
  return fmt::format("UCX: {}: {}", call, ucs_status_string(status));
}

// Newer versions are asked, older ones print it.
#ifdef ASSAY_UCX_TELLS_TRANSPORTS

std::string endpoint_path(ucp_ep_h endpoint) {
  std::array<ucp_transport_entry_t, 16> entries{};
  ucp_ep_attr_t attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports.entries = entries.data();
  attributes.transports.num_entries = entries.size();
  attributes.transports.entry_size = sizeof entries.front();
  if (ucp_ep_query(endpoint, &attributes) != UCS_OK) return {};
  std::set<std::string> paths;
  for (unsigned i = 0; i < attributes.transports.num_entries; ++i)
    paths.insert(fmt::format("{}/{}", entries[i].transport_name, entries[i].device_name));
  return fmt::format("{}", fmt::join(paths, "+"));
}

#else

std::string endpoint_path(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  const std::string path = path_from_info({text, bytes});
  std::free(text);
  return path;
}

#endif

Worker::Worker(const UcxCommunicator::Settings& settings) {
  ucp_config_t* config = nullptr;
  check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  ucs_status_t status = UCS_OK;
  if (!settings.devices.empty()) status = ucp_config_modify(config, "NET_DEVICES", settings.devices.c_str());
  if (status == UCS_OK && !settings.transports.empty())
    status = ucp_config_modify(config, "TLS", settings.transports.c_str());
  if (status == UCS_OK) {
    ucp_params_t params;
    std::memset(&params, 0, sizeof params);
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | (settings.one_sided ? UCP_FEATURE_RMA : 0);
    status = ucp_init(&params, config, &context_);
  }
  ucp_config_release(config);
  check(status, "ucp_init");
  ucp_worker_params_t params;
  std::memset(&params, 0, sizeof params);
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  status = ucp_worker_create(context_, &params, &worker_);
  if (status != UCS_OK) {
    ucp_cleanup(context_);
    check(status, "ucp_worker_create");
  }
}
Worker::~Worker() {
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}
std::string Worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

}  // namespace assay::ucx
