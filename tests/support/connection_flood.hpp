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
  long tried = 0, made = 0;  ///< connections begun, and those that stood at once: of the others the kernel
                             ///< lost the first packet
  double seconds = 0;
  bool refused = false;  ///< ended because nobody listened any more
};

/// One connection, from addresses of this machine by turns: one alone has too few ports. -1 where none can be
/// made.
inline int knock(std::uint16_t port, Flood& done) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  // Its end is a reset, which leaves nothing behind that the next ones would have to search through.
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const int late = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late, sizeof late);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + static_cast<std::uint32_t>(done.tried % 64));
  bind(fd, reinterpret_cast<sockaddr*>(&in), sizeof in);
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ++done.tried;
  done.refused = connect(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) != 0 && errno == ECONNREFUSED;
  socklen_t size = sizeof in;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&in), &size) == 0) {
    ++done.made;
  } else {
    int error = 0;
    size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    done.refused = done.refused || error == ECONNREFUSED;
  }
  return fd;
}

/// Opens `per_second` connections a second to a port of this machine until it is refused, for `most_seconds`
/// at most. Keeps some thousands of them open; every hundredth says something.
inline Flood flood(std::uint16_t port, int per_second, double most_seconds) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 5'000);
  setrlimit(RLIMIT_NOFILE, &files);
  std::deque<int> held;
  const std::string rubbish(20, 'r');
  const double begin = now();
  Flood done;
  while (!done.refused && (done.seconds = now() - begin) < most_seconds) {
    if (static_cast<double>(done.tried) > done.seconds * per_second) {
      usleep(200);
      continue;
    }
    const int fd = knock(port, done);
    if (fd >= 0) held.push_back(fd);
    if (done.tried % 100 == 0) send(fd, rubbish.data(), rubbish.size(), MSG_NOSIGNAL);
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
