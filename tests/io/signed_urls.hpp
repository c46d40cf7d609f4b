// Objects behind signed URLs.

#pragma once

#include <lade/io/file.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/runtime.hpp>
#include <lade/sync_wait.hpp>

#include <map>
#include <string>

#include "../support/web_server.hpp"

namespace lade::test {

inline std::string signed_by(const std::string& secret) {
  return "?X-Amz-Credential=AKIA/20260101&X-Amz-Date=20260101T000000Z&X-Amz-Signature=" + secret;
}
inline const std::string signature = signed_by("SECRET");

// What a request asks for, below the root. What is put behind a signed name is part of it, as where
// a directory is signed.
inline std::string file_asked_for(const web_request& request) {
  auto name = request.target.substr(1);
  auto begin = name.find('?');
  auto end = name.find("SECRET");
  if (end != name.npos) name.erase(begin, end + 6 - begin);
  return name;
}

inline web_reply reply_with(const std::map<std::string, std::string>& files,
                            const web_request& request) {
  auto found = files.find(file_asked_for(request));
  return found == files.end() ? web_reply{.status = 404, .body = "no such object"}
                              : file_reply(request, found->second);
}

// The default client keeps memory, which is no leak of a test.
inline void make_default_client() {
  web_server server([](auto& request) { return file_reply(request, "x"); });
  runtime runtime;
  (void)sync_wait(runtime, io::read_file(server.url("/")));
}

}  // namespace lade::test
