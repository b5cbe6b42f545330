// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/transfer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "measure/sizing.hpp"
#include "suite/work_on_files.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

constexpr std::size_t alignment = 4096, large_page = 2 << 20;
constexpr std::uint64_t generations = 1 << 12;
constexpr int nothing_right = 0x5a;              ///< each byte of memory before a read
constexpr std::uint64_t synced_bytes = 4 << 20;  ///< of one wait for storage: at most 1024 random blocks

}  // namespace

/// Large pages where there are any: what a device, or the host of a virtual machine, writes is then in few
/// places.
Aligned::Aligned(std::size_t bytes) : size_(bytes) {
  const std::size_t unit = bytes >= large_page ? large_page : alignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)));
  if (!data_) throw std::bad_alloc();
  if (unit == large_page) ::madvise(data_.get(), bytes, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, bytes);
}
void Aligned::Free::operator()(std::byte* p) const noexcept { std::free(p); }

Transfer::Transfer(Descriptor fd, std::string path, std::uint64_t file, const Layout& layout, Engine& engine,
                   DamageLog& log, Context& context)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      file_(file),
      layout_(layout),
      engine_(engine),
      log_(log),
      context_(context),
      memory_(layout.chunk_bytes()),
      generation_(layout.chunks, 0) {
  engine_.use_memory(memory_.bytes());
}

void Layout::split(int files) noexcept {
  const std::uint64_t bytes = file_bytes(), least = std::min<std::uint64_t>(chunk_blocks, 16);
  chunk_blocks = std::max(least, chunk_blocks / static_cast<std::uint64_t>(files));
  chunks = bytes / chunk_bytes();
}

double resident_blocks(int fd, const Layout& layout, std::uint64_t chunk, double unknown,
                       std::uint64_t begins_at) {
  double resident = 0;
  for (std::uint64_t b = 0; b < layout.chunk_blocks; ++b) {
    const auto share = resident_share(fd, begins_at + layout.offset(chunk, b), layout.block_bytes);
    resident += std::min(1.0, share.value_or(unknown));  // a block may begin and end within a page
  }
  return resident / static_cast<double>(layout.chunk_blocks);
}

std::uint64_t blocks_of_sample(std::uint64_t planned, double first_s, double block_s, double seconds) {
  return fitted_count(planned, block_s, std::max(seconds + block_s - first_s, seconds / 2));
}

double Transfer::first_blocks_s(std::uint64_t blocks) {
  chunk_ = 0;
  fill_chunk();
  make_requests();
  requests_.resize(blocks);
  engine_.fill_memory(requests_);
  const double begin = now_s();
  engine_.run(true, requests_);
  examine(true, requests_);
  sync();
  generation_[chunk_] = 0;  // the file is still to be laid out
  return now_s() - begin;
}

/// A block alone shows storage that is surely fast enough; of others, what further blocks add to it tells:
/// its fdatasync may take longer than many blocks.
Transfer::Fit Transfer::fit(double seconds) {
  const std::uint64_t planned = layout_.chunk_blocks;
  const double alone_s = first_blocks_s(1);
  if (alone_s * static_cast<double>(planned) <= seconds) return {planned, alone_s};
  const std::uint64_t some = fitted_count(std::min<std::uint64_t>(planned, 8), alone_s, seconds);
  double block_s = alone_s;
  if (some > 1) block_s = std::max(0.0, first_blocks_s(some) - alone_s) / static_cast<double>(some - 1);
  return {blocks_of_sample(planned, alone_s, block_s, seconds), block_s};
}

void Transfer::tell(const Fit& fit) const {
  if (fit.blocks == layout_.chunk_blocks) return;
  context_.record.event(
      "storage-cut-short",
      fmt::format("{}: samples of {} instead of {} blocks: only {} measured", path_, fit.blocks,
                  layout_.chunk_blocks,
                  format_quantity(static_cast<double>(layout_.block_bytes) / fit.block_s, "B/s")));
}

std::uint64_t Transfer::fitted_blocks(double seconds) {
  const Fit fitted = fit(seconds);
  tell(fitted);
  return fitted.blocks;
}

void fit_together(std::optional<Transfer>& transfer, double seconds, Together& together,
                  Communicator& group) {
  double blocks = std::numeric_limits<double>::infinity();
  together.guarded([&] { blocks = static_cast<double>(transfer->fitted_blocks(seconds)); });
  blocks = group.min(blocks);
  together.guarded([&] { transfer->shorten(static_cast<std::uint64_t>(blocks)); });
}

void lay_out_together(std::optional<Transfer>& transfer, double seconds, Together& together,
                      Communicator& group, std::optional<double> whole_s) {
  const std::uint64_t planned = transfer ? transfer->layout().file_bytes() : 0;
  fit_together(transfer, seconds / 2, together, group);  // several chunks, and as many samples
  together.guarded([&] {
    if (whole_s) transfer->resize(planned);
    transfer->lay_out(whole_s.value_or(seconds));
  });
}

void Transfer::resize(std::uint64_t file_bytes) {
  layout_.chunks = (file_bytes + layout_.chunk_bytes() - 1) / layout_.chunk_bytes();
  generation_.assign(layout_.chunks, 0);
}

void Transfer::lay_out(double seconds) {
  const double begin = now_s();
  std::uint64_t done = 0;
  do {
    chunk_ = done++;
    fill_chunk();
    make_requests();
    engine_.fill_memory(requests_);
    engine_.run(true, requests_);
    examine(true, requests_);
    if (!is_direct()) sync();  // one sync of all chunks may take minutes
  } while (done < layout_.chunks && now_s() - begin < seconds);
  layout_.chunks = done;
  log_.known().words = layout_.end() / sizeof(std::uint64_t);
  sync();
}

void Transfer::adopt(Descriptor fd, std::string path, std::uint64_t file, const Layout& layout,
                     std::uint64_t generation) {
  use_file(std::move(fd));
  path_ = std::move(path);
  file_ = file;
  layout_ = layout;
  generation_.assign(layout.chunks, generation);
  log_.known().words = std::max(log_.known().words, layout.end() / sizeof(std::uint64_t));
  chunk_ = 0;
}

void Transfer::use_file(Descriptor fd) {
  close();  // of what was written
  fd_ = std::move(fd);
  for (Request& r : requests_)
    if (r.fd >= -1) r.fd = fd_.get();  // else it is to fail
}

bool Transfer::is_direct() const noexcept { return (::fcntl(fd_.get(), F_GETFL) & O_DIRECT) != 0; }

void Transfer::next_chunk() { chunk_ = (chunk_ + 1) % layout_.chunks; }

/// The words of a new generation; the first is 1, so that there is an older one.
void Transfer::fill_chunk() {
  generation_[chunk_] = std::max<std::uint64_t>(1, (generation_[chunk_] + 1) % generations);
  log_.known().generations = std::max(log_.known().generations, generation_[chunk_] + 1);
  const std::uint64_t block_words = layout_.block_bytes / sizeof(std::uint64_t);
  for (std::uint64_t b = 0; b < layout_.chunk_blocks; ++b)
    fill(log_.known().key, {file_, generation_[chunk_], layout_.offset(chunk_, b) / sizeof(std::uint64_t)},
         memory_.words().subspan(b * block_words, block_words));
}

void Transfer::prepare(bool write) {
  next_chunk();
  if (write)
    fill_chunk();
  else
    std::memset(memory_.bytes().data(), nothing_right, memory_.bytes().size());
  make_requests();
  engine_.fill_memory(requests_);
  if (!write) look_at_cache();
  if (context_.injector == nullptr) return;
  if (told_to(context_, "disk-eio")) requests_[0].fd = -EIO;
  if (write && told_to(context_, "disk-enospc")) requests_[0].fd = -ENOSPC;
  if (write && told_to(context_, "disk-edquot")) requests_[0].fd = -EDQUOT;
}

/// Pages of the chunk that is about to be read. A direct file has none that would be used.
void Transfer::look_at_cache() {
  if (is_direct()) return;
  const std::uint64_t begin = layout_.offset(chunk_, 0), bytes = layout_.offset(chunk_ + 1, 0) - begin;
  if (drops_cache_)
    ::posix_fadvise(fd_.get(), static_cast<off_t>(begin), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
  const auto share = assay::resident_share(fd_.get(), begin, bytes);
  resident_share_ = std::max(resident_share_, share.value_or(1.0));
}

double Transfer::forget_file() const {
  ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  return assay::resident_share(fd_.get(), 0, layout_.end()).value_or(1.0);
}

double Transfer::evict() {
  if (is_direct() || is_in_memory(fd_.get(), path_)) return 1;
  sync_in_pieces();  // what is not stored stays in the cache
  ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  files_answered();
  if (layout_.ranks == 1) return 1 - assay::resident_share(fd_.get(), 0, layout_.end()).value_or(0.0);
  return 1 - resident_blocks(fd_.get(), layout_, chunk_, 0);
}

void Transfer::make_requests() {
  requests_.resize(layout_.chunk_blocks);
  for (std::uint64_t b = 0; b < layout_.chunk_blocks; ++b)
    requests_[b] = {fd_.get(),
                    layout_.offset(chunk_, b),
                    memory_.bytes().data() + b * layout_.block_bytes,
                    static_cast<std::uint32_t>(layout_.block_bytes),
                    0,
                    0};
}

void Transfer::move(bool write) {
  engine_.run(write, requests_);
  examine(write, requests_);
  written_ += write ? 1 : 0;
}

void Transfer::sync() {
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) throw Refused(path_ + ": sync", errno, true);
  files_answered();
}

/// One sync of random blocks in the whole file may take minutes. What ranks share, each sample has synced.
void Transfer::sync_in_pieces() {
  constexpr unsigned stored =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const std::uint64_t bytes = layout_.ranks == 1 ? layout_.end() : 0;
  for (std::uint64_t at = 0; at < bytes; at += synced_bytes) {
    const int told =
        ::sync_file_range(fd_.get(), static_cast<off_t>(at), static_cast<off_t>(synced_bytes), stored);
    // Where this call is not possible, the sync of the whole file tells what could not be stored.
    if (told != 0 && errno != EINVAL && errno != ENOSYS && errno != EPERM)
      throw Refused(path_ + ": sync", errno, true);
    files_answered();
  }
  sync();
}

void Transfer::close() {
  const int reason = fd_.close();
  if (reason != 0) throw Refused(path_ + ": close", reason, true);
}

/// Short reads are what `verify` looks at; a short write is an error.
void Transfer::examine(bool write, std::span<Request> requests) const {
  files_answered();
  for (Request& r : requests) {
    if (r.fd < 0) r.result = r.fd;  // broken on purpose
    if (r.result < 0 || (write && r.result != r.bytes)) fail(write, r);
  }
}

void Transfer::fail(bool write, const Request& r) const {
  const std::string what = fmt::format("{}: {} at offset {}", path_, write ? "write" : "read", r.offset);
  if (r.result < 0) throw Refused(what, static_cast<int>(-r.result), true);
  // A file system that becomes full takes a part of a block; what it says to the rest is the reason.
  const auto done = static_cast<std::uint64_t>(r.result);
  const ssize_t rest =
      ::pwrite(fd_.get(), r.data + done, r.bytes - done, static_cast<off_t>(r.offset + done));
  if (rest < 0 && errno != EINVAL) throw Refused(what, errno, true);
  throw Refused(fmt::format("{}: {} of {} bytes", what, r.result, r.bytes), 0, true);
}

std::uint64_t Transfer::read_again(std::uint64_t offset) const {
  alignas(alignment) std::byte page[alignment];
  std::uint64_t word = 0;
  const std::uint64_t begin = offset / alignment * alignment;
  const ssize_t n = ::pread(fd_.get(), page, alignment, static_cast<off_t>(begin));
  if (n >= static_cast<ssize_t>(offset - begin + sizeof word))
    std::memcpy(&word, page + (offset - begin), sizeof word);
  return word;
}

Block Transfer::block_read(std::uint64_t b) {
  const std::uint64_t block_words = layout_.block_bytes / sizeof(std::uint64_t);
  return {path_,
          {file_, generation_[chunk_], layout_.offset(chunk_, b) / sizeof(std::uint64_t)},
          memory_.words().subspan(b * block_words, block_words),
          static_cast<std::uint64_t>(requests_[b].result) / sizeof(std::uint64_t),
          [this](std::uint64_t offset) { return read_again(offset); }};
}

std::uint64_t Transfer::verify(double share) {
  budget_.begin();
  engine_.fetch_memory(requests_);
  const std::uint64_t blocks = layout_.chunk_blocks,
                      first = mix64(context_.random.key(), ++verified_chunks_) % blocks;
  std::uint64_t words = 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    Block block = block_read((first + i) % blocks);
    if (i == 0) corrupt(block, log_.known(), context_);
    words += log_.check(block, i == 0 || budget_.left(share));
  }
  budget_.end();
  return words * sizeof(std::uint64_t);
}

std::uint64_t Transfer::verify_written(double share) {
  budget_.begin();
  const auto some = static_cast<std::uint64_t>(engine_.depth());
  std::uint64_t words = 0;
  for (std::uint64_t left = std::min(written_, layout_.chunks); left > 0; --left) {
    make_requests();
    for (std::uint64_t b = 0; b < layout_.chunk_blocks; b += some) {
      if (words > 0 && !budget_.left(share)) return words * sizeof(std::uint64_t);
      const auto few = std::span(requests_).subspan(b, std::min(some, layout_.chunk_blocks - b));
      for (const Request& r : few) std::memset(r.data, nothing_right, r.bytes);
      engine_.fill_memory(few);
      engine_.run(false, few);
      examine(false, few);
      engine_.fetch_memory(few);
      for (std::uint64_t i = b; i < b + few.size(); ++i) {
        Block block = block_read(i);
        if (i == 0) corrupt(block, log_.known(), context_);
        words += log_.check(block);
      }
    }
    chunk_ = (chunk_ + layout_.chunks - 1) % layout_.chunks;
  }
  return words * sizeof(std::uint64_t);
}

}  // namespace assay::storage
