// Every format behind URLs: over HTTP, and without secrets in errors.

#include <lade/error.hpp>
#include <lade/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "../support/nginx.hpp"
#include "../support/seed.hpp"
#include "../support/temp_dir.hpp"
#include "formats/remote_files.hpp"
#include "signed_urls.hpp"

namespace lade::io {

using test::remote_file;
using test::reply_with;
using test::signature;
using testing::HasSubstr;
using testing::Not;
using testing_support::temp_dir;

class RemoteFormat : public testing::TestWithParam<remote_file> {
 protected:
  static void SetUpTestSuite() { test::make_default_client(); }
};
INSTANTIATE_TEST_SUITE_P(Each, RemoteFormat, testing::ValuesIn(test::remote_files()),
                         [](auto& of) { return of.param.name; });

TEST_P(RemoteFormat, OverHttpEqualsTheFile) {
  if (!test::has_nginx()) GTEST_SKIP() << "nginx or openssl is not installed";
  auto& format = GetParam();
  test::nginx server;
  temp_dir dir;
  for (auto& [name, content] : format.files) {
    server.directory().write("www/" + name, content);
    dir.write(name, content);
  }
  runtime runtime;
  auto local = format.read(runtime, dir / format.path);
  EXPECT_FALSE(local.empty());
  EXPECT_EQ(format.read(runtime, server.url("127.0.0.1", "/" + format.path)), local);
}

// What an error says of a read, if there is one.
static std::optional<std::string> error_of(runtime& where, const remote_file& format,
                                           const std::string& path) {
  try {
    (void)format.read(where, path);
  } catch (const error& failure) {
    return failure.what();
  }
  return std::nullopt;
}

TEST_P(RemoteFormat, HasNoSecretInItsErrorsWhenItIsAbsent) {
  auto& format = GetParam();
  test::web_server server([](auto& request) { return reply_with({}, request); });
  runtime runtime;
  auto text = error_of(runtime, format, server.url("/" + format.path + signature));
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("/" + format.path));
  EXPECT_THAT(*text, Not(HasSubstr("SECRET")));
}

// One of the files, cut short, or with bytes that are others.
static void damage(std::map<std::string, std::string>& files, std::mt19937_64& random) {
  auto file = std::next(files.begin(), static_cast<std::ptrdiff_t>(random() % files.size()));
  auto& content = file->second;
  auto at = random() % content.size();
  if (random() % 3 == 0)
    content.resize(at);
  else
    for (auto left = random() % 4 + 1; left > 0 && at < content.size(); --left)
      content[at++] = static_cast<char>(random());
}

TEST_P(RemoteFormat, HasNoSecretInItsErrorsWhenItIsDamaged) {
  const auto seed = test::new_seed();
  SCOPED_TRACE("LADE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto& format = GetParam();
  auto files = format.files;
  test::web_server server([&](auto& request) { return reply_with(files, request); });
  runtime runtime;
  auto url = server.url("/" + format.path + signature);
  EXPECT_EQ(error_of(runtime, format, url), std::nullopt);
  int errors = 0;
  for (int round = 0; round < 60; ++round) {
    files = format.files;
    damage(files, random);
    auto text = error_of(runtime, format, url);
    if (!text) continue;
    ++errors;
    EXPECT_THAT(*text, Not(HasSubstr("SECRET")));
  }
  EXPECT_GT(errors, 0);
}

}  // namespace lade::io
