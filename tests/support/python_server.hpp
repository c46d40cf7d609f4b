// Servers that are Python scripts, each in its own process.

#pragma once

#include <array>
#include <cerrno>
#include <cstdlib>
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

// Runs a script of this directory. The script's argument is a directory for its data. It prints its
// port when it is ready. It serves until its standard input ends: when this object is destroyed, or
// this process ends.
class python_server {
 public:
  // `variable`: an environment variable with the path of a Python that has the packages that the
  // script imports. If it is not set, /usr/bin/python3 runs the script.
  explicit python_server(const char* script, const char* variable = "") {
    auto* given = std::getenv(variable);
    std::string python = given && *given ? given : "/usr/bin/python3";
    auto path = (directory_of_support() / script).string();
    auto where = storage_ / "data";
    std::array<char*, 4> arguments{python.data(), path.data(), where.data(), nullptr};
    start(arguments.data());
    if (port_.empty()) require_skip(path, given && *given);
  }
  python_server(const python_server&) = delete;
  ~python_server() { end(); }

  // Whether the script has started. If not, its Python lacks packages.
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

  // Ends the process and waits for it. Returns its status as waitpid does.
  int end() {
    int status = 0;
    if (input_ >= 0) close(std::exchange(input_, -1));
    if (process_ > 0)
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {}
    process_ = -1;
    return status;
  }

  void start(char** arguments) {
    std::array<int, 2> in{-1, -1}, out{-1, -1};
    if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0)
      throw std::runtime_error("python_server: no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (posix_spawn(&process_, arguments[0], &actions, nullptr, arguments, environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    port_ = read_line(out[0]);
    close(out[0]);
  }

  // A script that lacks packages exits with 77. Throws std::runtime_error for another status, or if
  // `variable` is set.
  void require_skip(const std::string& script, bool is_named) {
    auto status = end();
    if (is_named || !WIFEXITED(status) || WEXITSTATUS(status) != 77)
      throw std::runtime_error(script + " has not started");
  }

  static std::string read_line(int fd) {
    std::string line;
    for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  testing_support::temp_dir storage_;
  pid_t process_ = -1;
  int input_ = -1;  // standard input of the script: closing it ends the script
  std::string port_;
};

}  // namespace lade::test
