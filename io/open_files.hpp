// Limits how many files the reads of a process hold open.

#pragma once

#include <lade/wait_list.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace lade::detail {

// Counts the open files. Thread-safe.
//
// Two kinds of openers hold files:
//   - A read of a whole file. At most `limit` such reads are in progress. While it holds its
//     descriptor, a read waits only for its own I/O, so waiting for a permit cannot deadlock. A
//     read that must wait for something else yields its slot first; at most limit / 2 reads have
//     yielded.
//   - A program that opens files itself: a holder, identified by its context. It may hold a file
//     while it waits for another one, so its opens do not wait for the limit.
//
// If the system refuses a descriptor, the open waits for the next close. It waits only while some
// opener can still close a file: a read, or a holder that has no waiting open.
class open_files {
 public:
  class read_awaiter;
  class close_awaiter;

  // The slot of a read of a whole file. The destructor releases it.
  class permit {
   public:
    permit(permit&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), has_yielded_(other.has_yielded_) {}
    ~permit() {
      if (from_) from_->end_read(has_yielded_ ? from_->yielded_ : from_->reads_);
    }

    // Releases the slot to another read, while this one's file stays open. Returns false if too
    // many reads have yielded already.
    bool yield_slot() noexcept;

   private:
    friend class read_awaiter;
    explicit permit(open_files& from) noexcept : from_(&from) {}

    open_files* from_;
    bool has_yielded_ = false;
  };

  explicit open_files(std::size_t limit) noexcept : limit_(limit) {}

  // The instance of this process. Its limit is half of RLIMIT_NOFILE: the other half is for files
  // that the program opens itself, and for descriptors that lade does not own.
  static open_files& of_process();

  // `co_await read_whole()` returns a permit, in the order of the calls. Throws error(stopped) if
  // the awaiting coroutine is asked to stop.
  [[nodiscard]] read_awaiter read_whole() noexcept;

  // The holder `opener` has opened, or closed, a file.
  void hold(const context* opener);
  void end_hold(const context* opener) noexcept;

  // `co_await closed(opener)` returns true after the next close, or false if no close can follow.
  // `opener`: the holder whose open was refused; null for a read of a whole file.
  [[nodiscard]] close_awaiter closed(const context* opener) noexcept;

 private:
  struct holder {
    std::size_t files = 0;
    std::size_t waiting = 0;  // opens that wait for a close
  };

  // Increments `count` if it is less than `limit`, and returns whether it did.
  static bool try_count(std::atomic<std::size_t>& count, std::size_t limit) noexcept;
  bool try_read() noexcept { return try_count(reads_, limit_); }
  void end_read(std::atomic<std::size_t>& count) noexcept;
  void resume_waiters() noexcept;

  // With the mutex held.
  bool may_close() const noexcept { return reads_ > stuck_reads_ || held_ > stuck_files_; }
  void begin_waiting(const context* opener);
  void end_waiting(const context* opener) noexcept;
  void erase_unused(const context* opener) noexcept;

  const std::size_t limit_;
  std::atomic<std::size_t> reads_ = 0;
  std::atomic<std::size_t> yielded_ = 0;
  std::atomic<bool> waiting_ = false;  // whether a list below may have waiters

  std::mutex mutex_;  // guards the members below
  wait_list readers_;
  wait_list openers_;
  std::map<const context*, holder> holders_;
  std::size_t held_ = 0;         // files of all holders
  std::size_t stuck_files_ = 0;  // of holders whose opens wait
  std::size_t stuck_reads_ = 0;  // reads whose opens wait
};

class open_files::read_awaiter : private waiter {
 public:
  explicit read_awaiter(open_files& files) noexcept : files_(files) {}
  bool await_ready() const noexcept { return !files_.waiting_ && files_.try_read(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park_after_look(coroutine, files_.mutex_, files_.readers_, [this] {
      // Set before try_read(): a read that ends sees the flag, or try_read() sees its slot.
      files_.waiting_ = true;
      return files_.readers_.empty() && files_.try_read();
    });
  }
  permit await_resume();

 private:
  open_files& files_;
};

class open_files::close_awaiter : private waiter {
 public:
  close_awaiter(open_files& files, const context* opener) noexcept
      : files_(files), opener_(opener) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return park_after_look(coroutine, files_.mutex_, files_.openers_, [this] { return !begin(); });
  }
  bool await_resume();

 private:
  friend class open_files;

  bool begin();  // false if there is nothing to wait for

  open_files& files_;
  const context* opener_;
  bool waits_ = false;   // guarded by the mutex
  bool closed_ = false;  // guarded by the mutex
};

inline open_files::read_awaiter open_files::read_whole() noexcept { return read_awaiter(*this); }
inline open_files::close_awaiter open_files::closed(const context* opener) noexcept {
  return {*this, opener};
}

}  // namespace lade::detail
