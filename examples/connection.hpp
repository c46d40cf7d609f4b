// Frames over a socket, in coroutines: four bytes with the size, the most significant first, and as
// many bytes.

#pragma once

#include <lade/error.hpp>
#include <lade/io/poll.hpp>
#include <lade/task.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

// The result of a system call, or -errno.
template <class T>
T or_errno(T result) noexcept {
  return result < 0 ? static_cast<T>(-errno) : result;
}

// Owns a connected socket. A stop ends all waits, with error(stopped).
class connection {
 public:
  explicit connection(int fd) noexcept : fd_(fd) {}
  connection(connection&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), amid_answer_(other.amid_answer_) {}
  connection& operator=(connection&&) = delete;

  // Resets the connection if the peer has not taken an answer: the system would keep it, and try.
  ~connection() {
    if (fd_ < 0) return;
    linger at_once{.l_onoff = 1, .l_linger = 0};
    if (amid_answer_) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(fd_);
  }

  // Awaits bytes of the peer's, or the end of the connection.
  lade::task<unsigned> readable() const { return lade::io::poll(fd_, POLLIN); }

  // Nothing when the peer has closed the connection. Takes no more memory than has been received:
  // the peer may promise anything. Throws error(limit_exceeded) for more than `most` bytes.
  lade::task<std::optional<std::string>> receive(std::size_t most) const {
    std::string head = co_await receive_bytes(4);
    if (head.size() < 4) co_return std::nullopt;
    std::size_t size = 0;
    for (char byte : head) size = size << 8 | static_cast<unsigned char>(byte);
    if (size > most)
      throw lade::error(lade::errc::limit_exceeded, "receive a request",
                        std::to_string(size) + " bytes are more than " + std::to_string(most));
    std::string frame = co_await receive_bytes(size);
    if (frame.size() < size) co_return std::nullopt;
    co_return frame;
  }

  lade::task<> send(std::string text) {
    amid_answer_ = true;
    auto size = text.size();
    for (int i = 0; i < 4; ++i, size >>= 8) text.insert(text.begin(), static_cast<char>(size));
    for (std::string_view left = text; !left.empty();) {
      auto sent = or_errno(::send(fd_, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
      if (sent >= 0)
        left.remove_prefix(static_cast<std::size_t>(sent));
      else
        co_await wait(POLLOUT, static_cast<int>(-sent), "send an answer");
    }
    amid_answer_ = false;
  }

  // Whether a call of send() has failed, behind which no other answer may follow.
  bool is_amid_answer() const noexcept { return amid_answer_; }

  // After the last answer: drops the bytes that the peer still sends, until it closes the
  // connection. If the socket were closed earlier, the peer might lose the answer. Returns how many
  // bytes it has dropped. A stop ends it, and others have their turn, however fast the peer sends.
  lade::task<std::size_t> finish() const {
    ::shutdown(fd_, SHUT_WR);
    std::array<char, 4096> some;
    std::size_t dropped = 0;
    while (true) {
      co_await readable();
      auto received = or_errno(::recv(fd_, some.data(), some.size(), MSG_DONTWAIT));
      if (received == 0) co_return dropped;
      if (received > 0)
        dropped += static_cast<std::size_t>(received);
      else
        co_await wait(POLLIN, static_cast<int>(-received), "hang up");
    }
  }

 private:
  // Fewer bytes only if the peer has closed the connection.
  lade::task<std::string> receive_bytes(std::size_t count) const {
    std::string bytes;
    std::array<char, 4096> some;
    while (bytes.size() < count) {
      auto size = std::min(count - bytes.size(), some.size());
      auto received = or_errno(::recv(fd_, some.data(), size, MSG_DONTWAIT));
      if (received == 0) break;
      if (received > 0)
        bytes.append(some.data(), static_cast<std::size_t>(received));
      else
        co_await wait(POLLIN, static_cast<int>(-received), "receive a request");
    }
    co_return bytes;
  }

  lade::task<> wait(unsigned events, int failure, const char* doing) const {
    if (failure == EAGAIN)
      co_await lade::io::poll(fd_, events);
    else if (failure != EINTR)
      lade::raise(failure, doing);
  }

  int fd_;
  bool amid_answer_ = false;
};
