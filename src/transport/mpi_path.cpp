// SPDX-License-Identifier: Apache-2.0
// Open MPI registers the variables of a component only while that component is open, and tells the tool
// interface by categories: "ompi_pml_ob1", "opal_btl_vader", "ompi_mtl_psm2". So the components in use can be
// read off the categories after MPI_Init. (Its control variable "pml" holds only what was asked for, e.g.
// "^ucx".)
#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/mpi_check.hpp"
#include "transport/mpi_detail.hpp"

namespace assay::mpi {
namespace {

/// Keeps the tool interface open while it lives.
struct ToolSession {
  bool open = false;
  ToolSession() {
    int provided = 0;
    // What is asked for here becomes what MPI_Query_thread says afterwards (Open MPI 4.1), so less must not
    // be asked for.
    open = MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) == MPI_SUCCESS;
  }
  ~ToolSession() {
    if (open) MPI_T_finalize();
  }
  ToolSession(const ToolSession&) = delete;
  ToolSession& operator=(const ToolSession&) = delete;
};

/// Names of the open components of a framework, e.g. "ompi_pml_" -> {"ob1"}; without the framework's own
/// "base".
std::vector<std::string> components(const std::string& prefix) {
  std::vector<std::string> found;
  int categories = 0;
  if (MPI_T_category_get_num(&categories) != MPI_SUCCESS) return found;
  for (int i = 0; i < categories; ++i) {
    char name[256] = "", text[512] = "";
    int name_length = sizeof name, text_length = sizeof text, cvars = 0, pvars = 0, children = 0;
    if (MPI_T_category_get_info(i, name, &name_length, text, &text_length, &cvars, &pvars, &children) !=
        MPI_SUCCESS)
      continue;
    const std::string full = name;
    if (full.rfind(prefix, 0) != 0 || cvars == 0) continue;
    const std::string component = full.substr(prefix.size());
    if (component != "base" && std::find(found.begin(), found.end(), component) == found.end())
      found.push_back(component);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The value of a text control variable, empty when there is none.
std::string control(const std::string& wanted) {
  int index = -1, count = 0;
  if (MPI_T_cvar_get_index(wanted.c_str(), &index) != MPI_SUCCESS) return "";
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return "";
  std::vector<char> value(static_cast<std::size_t>(std::max(count, 1)) + 1, '\0');
  const bool ok = MPI_T_cvar_read(handle, value.data()) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return ok ? std::string(value.data()) : "";
}

}  // namespace

std::string describe_path() {
  const ToolSession session;
  if (!session.open) return "mpi";
  const auto pml = components("ompi_pml_");
  if (pml.size() != 1) {
    const std::string wish = control("pml");
    return wish.empty() ? "mpi" : "requested:" + wish;
  }
  if (pml.front() == "ob1") {
    const auto btl = components("opal_btl_");
    return btl.empty() ? "ob1" : fmt::format("ob1/{}", fmt::join(btl, ","));
  }
  if (pml.front() == "cm") {
    const auto mtl = components("ompi_mtl_");
    return mtl.size() == 1 ? "cm/" + mtl.front() : "cm/requested:" + control("mtl");
  }
  return pml.front();
}

namespace {

/// describe_path() takes 0.2 s, so the first rank of each node asks, once, and tells the others. All ranks
/// must take part in the first call.
const std::string& node_path() {
  static const std::string path = [] {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part),
          "MPI_Comm_split_type");
    const auto node = make_communicator(part, "", count_limit, nullptr);
    return node->broadcast_text(node->rank() == 0 ? describe_path() : "", 0);
  }();
  return path;
}

}  // namespace

std::unique_ptr<Communicator> duplicate_world(std::size_t limit, supervisor::Heartbeat* heartbeat) {
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return make_communicator(copy, node_path(), limit, heartbeat);
}

}  // namespace assay::mpi
