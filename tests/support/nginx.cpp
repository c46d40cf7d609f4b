#include "nginx.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lade::test {

static std::string path_of_program(const std::string& name) {
  for (const std::string folder :
       {"/usr/sbin/", "/usr/local/sbin/", "/usr/bin/", "/usr/local/bin/"})
    if (access((folder + name).c_str(), X_OK) == 0) return folder + name;
  return {};
}

bool has_nginx() {
  return !path_of_program("nginx").empty() && !path_of_program("openssl").empty();
}

// A listening socket on a port of the kernel's choice. nginx inherits it, so nobody can take the
// port, and connections that come before it has started wait.
static std::pair<int, int> listen_somewhere() {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, size) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, generic, &size) != 0)
    throw std::runtime_error("nginx: no socket");
  return {fd, ntohs(address.sin_port)};
}

nginx::nginx(const std::string& server, const std::string& certificate)
    : is_secure_(!certificate.empty()) {
  auto [listener, port] = listen_somewhere();
  port_ = port;
  auto in = [&](const char* name) { return " " + (directory_ / name) + ";\n"; };
  std::filesystem::create_directory(directory_ / "www");
  std::string config = geteuid() == 0 ? "user root;\n" : "";
  config += "daemon off;\nworker_processes 1;\npid" + in("pid") + "error_log" + in("errors") +
            "events { worker_connections 1024; }\nhttp {\nlog_format connections '$connection';\n"
            "access_log " +
            (directory_ / "log") + " connections;\nkeepalive_requests 1000000;\n";
  for (auto* each : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
    config += std::string(each) + "_temp_path" + in("temporary");
  config += "server {\nlisten 127.0.0.1:" + std::to_string(port_) +
            (is_secure_ ? " ssl http2;\nssl_certificate " + certificate +
                              ";\nssl_certificate_key " + certificate + ";\n"
                        : ";\n") +
            "root" + in("www") + server + "\n}\n}\n";
  start(listener, directory_.write("config", config));
  close(listener);
}

nginx::~nginx() { stop(); }

void nginx::start(int listener, const std::string& config) {
  auto program = path_of_program("nginx");
  auto inherited = "NGINX=" + std::to_string(listener) + ";";
  auto errors = directory_ / "errors";
  auto folder = directory_.path().string();
  char* arguments[] = {program.data(),
                       const_cast<char*>("-e"),
                       errors.data(),
                       const_cast<char*>("-p"),
                       folder.data(),
                       const_cast<char*>("-c"),
                       const_cast<char*>(config.c_str()),
                       nullptr};
  char* environment[] = {inherited.data(), nullptr};
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("nginx: no process");
  if (process_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  fcntl(listener, F_SETFD, 0);
  execve(program.c_str(), arguments, environment);
  _exit(127);
}

void nginx::stop() {
  if (process_ < 0) return;
  kill(process_, SIGTERM);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
  process_ = -1;
}

std::string nginx::url(std::string_view host, std::string_view target) const {
  return (is_secure_ ? "https://" : "http://") + std::string(host) + ":" + std::to_string(port_) +
         std::string(target);
}

std::size_t nginx::stop_and_count_connections() {
  stop();
  std::ifstream log(directory_ / "log");
  return std::set<std::string>(std::istream_iterator<std::string>(log), {}).size();
}

test_authority::test_authority() {
  request_certificate("-keyout ca.key -out ca.pem -subj /CN=authority-of-a-test");
}

std::string test_authority::certificate(const std::string& name) {
  request_certificate("-keyout " + name + ".key -out " + name + ".crt -subj /CN=" + name +
                      " -CA ca.pem -CAkey ca.key -addext subjectAltName=DNS:" + name +
                      " -addext basicConstraints=critical,CA:FALSE");
  std::ifstream certificate(directory_ / (name + ".crt"));
  std::ifstream key(directory_ / (name + ".key"));
  return directory_.write(name + ".pem",
                          std::string(std::istreambuf_iterator<char>(certificate), {}) +
                              std::string(std::istreambuf_iterator<char>(key), {}));
}

std::string test_authority::folder() const {
  std::filesystem::create_directory(directory_ / "folder");
  shell("cp ca.pem folder/$('" + path_of_program("openssl") + "' x509 -hash -noout -in ca.pem).0");
  return directory_ / "folder";
}

void test_authority::request_certificate(const std::string& arguments) const {
  shell("'" + path_of_program("openssl") +
        "' req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 " + arguments +
        " 2> log");
}

void test_authority::shell(const std::string& command) const {
  if (std::system(("cd '" + directory_.path().string() + "' && " + command).c_str()) != 0)
    throw std::runtime_error(command + ": see its message in a shell");
}

}  // namespace lade::test
