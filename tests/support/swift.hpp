// An object store in a process of its own: OpenStack Swift with its S3 interface.

#pragma once

#include <array>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temp_dir.hpp"

extern "C" char** environ;

namespace lade::test {

// Serves until it is destroyed, or this process ends.
class swift_server {
 public:
  static constexpr const char* access_key = "test:tester";
  static constexpr const char* secret_key = "testing";

  swift_server() {
    std::array<int, 2> in{-1, -1}, out{-1, -1};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0)
      throw std::runtime_error("swift_server: no pipe");
    auto script = (directory_of_support() / "swift_server.py").string();
    auto where = storage_ / "swift";
    std::array<char*, 4> arguments{const_cast<char*>("/usr/bin/python3"), script.data(),
                                   where.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    port_ = read_line(out[0]);
    close(out[0]);
    if (port_.empty()) require_skip();
  }
  swift_server(const swift_server&) = delete;
  ~swift_server() { end(); }

  // Whether it is installed here, and has a file system that it can use.
  bool serves() const { return !port_.empty(); }
  std::string url() const { return "http://127.0.0.1:" + port_; }

 private:
  // __FILE__ may be relative to the build directory, in or below which tests run.
  static std::filesystem::path directory_of_support() {
    auto from = std::filesystem::current_path();
    while (!std::filesystem::exists(from / __FILE__) && from != from.root_path())
      from = from.parent_path();
    return std::filesystem::canonical(from / __FILE__).parent_path();
  }

  // Awaits the end of the process. Returns its status as of waitpid.
  int end() {
    int status = 0;
    if (input_ >= 0) close(std::exchange(input_, -1));
    if (process_ > 0)
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {}
    process_ = -1;
    return status;
  }

  void require_skip() {
    auto status = end();
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 77)
      throw std::runtime_error("swift_server: it has not started");
  }

  static std::string read_line(int fd) {
    std::string line;
    for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  testing_support::temp_dir storage_;
  pid_t process_ = -1;
  int input_ = -1;  // its end ends the server
  std::string port_;
};

}  // namespace lade::test
