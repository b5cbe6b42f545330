// SPDX-License-Identifier: Apache-2.0
// Somebody who opens connections that belong to no run, as many as he can.
#pragma once

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <deque>
#include <string>

namespace assay::testing_support {

struct Flood {
  long made = 0;
  double seconds = 0;
  bool refused = false;  ///< ended because nobody listened any more
};

/// Opens `per_second` connections a second to a port of this machine until it is refused, for `most_seconds` at most. Keeps as many as
/// it may have open; every second one says something.
inline Flood flood(std::uint16_t port, int per_second, double most_seconds) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 20'000);
  setrlimit(RLIMIT_NOFILE, &files);
  std::deque<int> held;
  const std::string rubbish(20, 'r');
  const double begin = now();
  Flood done;
  while (!done.refused && (done.seconds = now() - begin) < most_seconds) {
    if (static_cast<double>(done.made) > done.seconds * per_second) {
      usleep(200);
      continue;
    }
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
      done.refused = connect(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) != 0 && errno == ECONNREFUSED;
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      done.refused = done.refused || error == ECONNREFUSED;
      if (done.made % 100 == 0) send(fd, rubbish.data(), rubbish.size(), MSG_NOSIGNAL);
      held.push_back(fd);
      done.made += done.refused ? 0 : 1;
    }
    if (held.size() + 100 > files.rlim_cur || fd < 0) {
      if (held.empty()) break;
      close(held.front());
      held.pop_front();
    }
  }
  for (const int fd : held) close(fd);
  return done;
}

}  // namespace assay::testing_support
