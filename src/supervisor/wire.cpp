// SPDX-License-Identifier: Apache-2.0
#include "supervisor/wire.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace assay::supervisor {
namespace {

struct Header {
  std::uint32_t magic = 0;
  MessageType type = MessageType::status;
  std::int32_t rank = 0, number = 0;
  std::uint32_t sequence = 0, received = 0;
  std::uint64_t length = 0;
};
constexpr std::uint32_t magic = 0x61737379;
constexpr std::size_t chunk = 64 << 10;

/// On a busy line a buffer is never empty: what is done with at its front must go nevertheless.
void drop_front(std::string& buffer, std::size_t& done) {
  if (done < buffer.size() && (done < chunk || done < buffer.size() / 2)) return;
  buffer.erase(0, done);
  done = 0;
}

}  // namespace

Stream::Stream(int fd, std::size_t text_limit) : fd_(fd), limit_(text_limit) {
  if (fd_ < 0) return;
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

Stream::~Stream() { close(); }

Stream::Stream(Stream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      limit_(other.limit_),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      taken_(other.taken_),
      sent_(other.sent_) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  limit_ = other.limit_;
  in_ = std::move(other.in_);
  out_ = std::move(other.out_);
  taken_ = other.taken_;
  sent_ = other.sent_;
  return *this;
}

void Stream::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Stream::queue(const Message& message) {
  if (!open()) return;
  Header header;
  std::memset(static_cast<void*>(&header), 0, sizeof header);
  header.magic = magic;
  header.type = message.type;
  header.rank = message.rank;
  header.number = message.number;
  header.sequence = message.sequence;
  header.received = message.received;
  header.length = message.text.size();
  drop_front(out_, sent_);
  out_.append(reinterpret_cast<const char*>(&header), sizeof header);
  out_ += message.text;
}

bool Stream::pump_out() noexcept {
  while (wants_out()) {
    const ssize_t n = ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    sent_ += static_cast<std::size_t>(n);
  }
  return true;
}

bool Stream::pump_in() {
  // Shared by all lines of a thread: a collector has thousands.
  static thread_local std::array<char, chunk> arrived;
  drop_front(in_, taken_);
  if (in_.empty() && in_.capacity() > chunk) in_ = std::string();
  for (;;) {
    // One message at most beyond the limit waits here; a peer that sends more is read when that one is taken.
    if (in_.size() - taken_ > limit_ + sizeof(Header)) return true;
    const ssize_t n = ::recv(fd_, arrived.data(), arrived.size(), 0);
    if (n > 0) {
      in_.append(arrived.data(), static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

std::optional<Message> Stream::take() {
  if (in_.size() - taken_ < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(static_cast<void*>(&header), in_.data() + taken_, sizeof header);
  if (header.magic != magic || header.type < MessageType::hello || header.type > MessageType::last)
    throw Error(ErrorKind::data, "not a message of a supervisor");
  if (header.length > limit_) throw Error(ErrorKind::data, "a message of a supervisor is too long");
  if (in_.size() - taken_ - sizeof header < header.length) return std::nullopt;
  Message message{
      header.type,     header.rank,
      header.number,   in_.substr(taken_ + sizeof header, static_cast<std::size_t>(header.length)),
      header.sequence, header.received};
  taken_ += sizeof header + static_cast<std::size_t>(header.length);
  return message;
}

bool Stream::send_all(const Message& message) {
  queue(message);
  while (wants_out()) {
    if (!pump_out()) return false;
    if (!wants_out()) break;
    pollfd p{fd_, POLLOUT, 0};
    if (poll(&p, 1, -1) < 0 && errno != EINTR) return false;
  }
  return open();
}

std::optional<Message> Stream::wait() {
  for (;;) {
    if (auto message = take()) return message;
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, -1) < 0 && errno != EINTR) return std::nullopt;
    if (!pump_in()) return take();
  }
}

}  // namespace assay::supervisor
