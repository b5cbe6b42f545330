// SPDX-License-Identifier: Apache-2.0
// A file of this rank, moved in chunks of blocks: prepared before the clock starts, checked after it stops.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/cold.hpp"
#include "suite/together.hpp"
#include "suites/storage/damage_log.hpp"
#include "suites/storage/engine.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/verify_budget.hpp"

namespace assay::storage {

/// Memory that direct transfers may use.
class Aligned {
 public:
  explicit Aligned(std::size_t bytes);
  std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  std::span<std::uint64_t> words() const noexcept {
    return {reinterpret_cast<std::uint64_t*>(data_.get()), size_ / sizeof(std::uint64_t)};
  }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> data_;
};

struct Layout {
  std::uint64_t block_bytes = 0;   ///< of a request
  std::uint64_t chunk_blocks = 0;  ///< of a sample
  std::uint64_t chunks = 0;        ///< of the file
  /// Ranks whose blocks alternate in one file, and which of them this is: 1 and 0 for a file of its own.
  std::uint64_t ranks = 1, rank = 0;
  std::uint64_t chunk_bytes() const noexcept { return block_bytes * chunk_blocks; }
  /// Of this rank.
  std::uint64_t file_bytes() const noexcept { return chunk_bytes() * chunks; }
  std::uint64_t offset(std::uint64_t chunk, std::uint64_t block) const noexcept {
    return ((chunk * chunk_blocks + block) * ranks + rank) * block_bytes;
  }
  /// Smaller chunks of the same file, where a rank moves one of each of `files` at once.
  void split(int files) noexcept;
  /// Of the whole file.
  std::uint64_t end() const noexcept { return file_bytes() * ranks; }
};

/// The share of a rank's blocks of a chunk that is in the page cache, `unknown` of those of which nothing
/// tells it. `begins_at`: where the layout's first byte is in the file. A file of all ranks may have
/// terabytes, of which a node reads a small part: what is resident of the whole of it says little.
double resident_blocks(int fd, const Layout& layout, std::uint64_t chunk, double unknown,
                       std::uint64_t begins_at = 0);

/// Blocks of a sample, at most those planned, where the first takes `first_s` and each further one `block_s`:
/// as many as take `seconds`, or half of them where the first block alone takes that. A little slower storage
/// has a few blocks less.
std::uint64_t blocks_of_sample(std::uint64_t planned, double first_s, double block_s, double seconds);

class Transfer {
 public:
  /// The file is open; its words are those of file number `file`.
  Transfer(Descriptor fd, std::string path, std::uint64_t file, const Layout& layout, Engine& engine,
           DamageLog& log, Context& context);

  /// Writes the first generations of chunks until all are there or `seconds` are over; the file has those
  /// that are. At least one. Through the page cache each is synced, so that `seconds` are those of storage.
  void lay_out(double seconds);
  /// What a chunk may have so that this storage writes it in `seconds`: writes a few blocks.
  struct Fit {
    std::uint64_t blocks;  ///< at most those planned
    double block_s;        ///< of one
  };
  Fit fit(double seconds);
  /// An event where they are fewer than planned.
  void tell(const Fit& fit) const;
  /// Both.
  std::uint64_t fitted_blocks(double seconds);
  void shorten(std::uint64_t chunk_blocks) noexcept { layout_.chunk_blocks = chunk_blocks; }
  /// As many chunks as a file of this size has.
  void resize(std::uint64_t file_bytes);
  /// Before each chunk is read, asks the kernel to let go of its pages: where O_DIRECT cannot be used.
  void drop_cache() noexcept { drops_cache_ = true; }
  /// Asks for that at once; the share of the file that is in the page cache then, 1 where it is unknown.
  double forget_file() const;
  /// The largest share of a chunk that was in the page cache when its reading began; 1 where it is unknown.
  double resident_share() const noexcept { return resident_share_; }
  const Layout& layout() const noexcept { return layout_; }
  /// Goes on with what another rank has written: its file, opened here, and its chunks, all of one
  /// generation.
  void adopt(Descriptor fd, std::string path, std::uint64_t file, const Layout& layout,
             std::uint64_t generation = 1);
  /// The chunk that is prepared goes to this file, or comes from it. Closes the one before; throws Refused.
  void use_file(Descriptor fd);

  /// Before the clock: the next chunk's words of a new generation, or memory in which nothing right is left.
  void prepare(bool write);
  /// One chunk. Throws Error(resource) for what failed, naming host, path, offset and reason.
  void move(bool write);
  void sync();
  /// Closes the file; `use_file` comes before the next transfer. Throws Refused: some file systems tell that
  /// they are full only then.
  void close();
  /// After the clock: the chunk that was read last. Every word of its blocks, from one that is drawn on,
  /// until the verifications have taken `share` of the time since this was made; a word of each sector of
  /// the other blocks. Returns how many bytes were compared.
  std::uint64_t verify(double share = verify_share);
  /// Before written data are read back: waits until those that went through the page cache are stored, and
  /// asks the kernel to let go of them. The share of the file that is not in the page cache then, of one that
  /// ranks share that of this rank's blocks written last; 1 with O_DIRECT, where it is unknown, and in
  /// memory, where there is nothing but that cache.
  double evict();
  /// Reads back what `move` has written, the last chunk first, and compares every word, until that has taken
  /// `share` of the time before it.
  std::uint64_t verify_written(double share = verify_share);

  std::uint64_t chunk_bytes() const noexcept { return layout_.chunk_bytes(); }
  std::uint64_t file_bytes() const noexcept { return layout_.file_bytes(); }
  std::uint64_t file() const noexcept { return file_; }
  const std::string& path() const noexcept { return path_; }
  int descriptor() const noexcept { return fd_.get(); }
  /// Throws Error(resource) for requests that failed, and writes that were short.
  void examine(bool write, std::span<Request> requests) const;
  /// A word of the file, from storage once more.
  std::uint64_t read_again(std::uint64_t offset) const;

 private:
  double first_blocks_s(std::uint64_t blocks);
  void next_chunk();
  bool is_direct() const noexcept;
  void fill_chunk();
  void make_requests();
  void look_at_cache();
  void sync_in_pieces();
  [[noreturn]] void fail(bool write, const Request& request) const;
  Block block_read(std::uint64_t b);

  Descriptor fd_;
  std::string path_;
  std::uint64_t file_;
  Layout layout_;
  Engine& engine_;
  DamageLog& log_;
  Context& context_;
  Aligned memory_;
  std::vector<std::uint64_t> generation_;  ///< of each chunk, as written last
  std::uint64_t chunk_ = 0, written_ = 0;  ///< `written_`: how many `move` has written
  bool drops_cache_ = false;
  double resident_share_ = 0;
  std::vector<Request> requests_;
  VerifyBudget budget_;
  std::uint64_t verified_chunks_ = 0;
};

/// Collective over `group`: chunks of equal size, as large as the slowest of its ranks writes in
/// `seconds`.
void fit_together(std::optional<Transfer>& transfer, double seconds, Together& together, Communicator& group);
/// The same in half of `seconds`, so that storage of any rate has several, and the files laid out in at most
/// `seconds`; with `whole_s` the files keep their planned size, and `whole_s` is their time.
void lay_out_together(std::optional<Transfer>& transfer, double seconds, Together& together,
                      Communicator& group, std::optional<double> whole_s = {});

}  // namespace assay::storage
