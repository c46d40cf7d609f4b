// Runs over URLs: which texts they produce, and which URLs their states and indexes identify.

#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/io/formats/shards.hpp>
#include <lade/io/formats/tar_samples.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/state.hpp>
#include <lade/stats.hpp>
#include <lade/sync_wait.hpp>
#include <lade/trace.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../support/temp_dir.hpp"
#include "formats/bytes.hpp"
#include "formats/remote_files.hpp"
#include "formats/tar_bytes.hpp"
#include "signed_urls.hpp"

namespace lade::io {

using test::remote_file;
using test::reply_with;
using test::signature;
using test::signed_by;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::temp_dir;

class RemoteRun : public testing::Test {
 protected:
  static void SetUpTestSuite() { test::make_default_client(); }
};

static std::string tar_of(const std::vector<std::string>& names) {
  std::string archive;
  for (auto& name : names) archive += test::tar_file(name + ".txt", "text of " + name);
  return archive + test::tar_end();
}

static shards one_shard(const std::string& name) { return shards(std::vector<std::string>{name}); }

// All texts that a run produces about itself and its items.
template <class T>
static std::string output_of(runtime& where, const pipeline<T>& stages, trace& into) {
  std::string output;
  std::string failures;  // written by another thread
  run_options options{.on_error = on_error::skip,
                      .on_failure = [&](auto& record) { failures += to_json(record); },
                      .trace = &into};
  auto running = where.run(stages, std::move(options));
  for (auto& each : running) {
    if constexpr (std::same_as<T, sample>) output += each.name();
    if (output.size() < 100) output += to_json(running.state());
  }
  for (auto& record : running.failures()) output += to_json(record) + record.item + record.what;
  output += table(running.statistics()) + to_json(running.statistics()) + to_json(running.state());
  return output + failures;
}

TEST_F(RemoteRun, ShowsNoSecrets) {
  const std::map<std::string, std::string> files{{"a.tar", tar_of({"x", "y"})},
                                                 {"cut.tar", tar_of({"x", "y"}).substr(0, 1200)},
                                                 {"a.bin", "0123456789"}};
  test::web_server server([&](auto& request) { return reply_with(files, request); });
  temp_dir dir;
  runtime runtime;
  std::string output;
  trace recorded(dir / "trace");
  for (const auto& query : {signature, std::string("?token=SECRET")}) {
    std::vector<std::string> names;
    for (auto* name : {"/a.tar", "/cut.tar", "/absent.tar"})
      names.push_back(server.url(name + query));
    std::vector<sample> samples(names.begin(), names.end());
    auto streamed = from_shards(shards(names), {.on_error = on_error::skip});
    auto indexed = sync_wait(runtime, index_shards(one_shard(names[0])));
    auto file = sync_wait(runtime, open_tokens(server.url("/a.bin" + query), element_type::u16));
    token_windows windows(file, {.length = 2});
    auto by_index = from_index(windows.size(), std::identity(), {.identity = windows.identity()});
    output += output_of(runtime, streamed, recorded);
    output += output_of(runtime, from(samples) | map(io::read), recorded);
    output += output_of(runtime, from(indexed) | map(indexed.read()), recorded);
    output += output_of(runtime, by_index | map(read_tokens(windows)), recorded);
  }
  recorded.finish();
  std::ifstream kept(dir / "trace");
  output += std::string(std::istreambuf_iterator<char>(kept), {});
  EXPECT_THAT(output, HasSubstr("/a.tar?"));
  EXPECT_THAT(output, HasSubstr("/absent.tar?"));
  EXPECT_THAT(output, HasSubstr("\"a.bin?"));
  EXPECT_EQ(output.find("SECRET"), output.npos) << output;
}

// The keys behind the state of a run that has delivered one item.
static std::vector<std::string> rest_of(runtime& where, const pipeline<sample>& first,
                                        const pipeline<sample>& again) {
  state after_one;
  {
    auto running = where.run(first);
    EXPECT_NE(running.begin(), running.end());
    after_one = running.state();
  }
  std::vector<std::string> names;
  for (auto& each : where.run(again, {.state = after_one})) {
    auto name = each.name();
    names.push_back(name.substr(name.rfind('/') + 1));
  }
  return names;
}

TEST_F(RemoteRun, ResumesFromAStateWhenUrlsHaveNewSignatures) {
  const std::map<std::string, std::string> files{{"a.tar", tar_of({"a", "b"})},
                                                 {"b.tar", tar_of({"c"})}};
  test::web_server server([&](auto& request) { return reply_with(files, request); });
  runtime runtime;
  auto names = [&](const std::string& secret) {
    return shards({server.url("/a.tar" + signed_by(secret + "SECRET")),
                   server.url("/b.tar" + signed_by(secret + "SECRET"))});
  };
  EXPECT_THAT(rest_of(runtime, from_shards(names("1")), from_shards(names("2/3"))),
              ElementsAre("b", "c"));
  auto once = sync_wait(runtime, index_shards(names("1")));
  auto again = sync_wait(runtime, index_shards(names("2/3")));
  EXPECT_EQ(rest_of(runtime, from(once), from(again)).size(), 2u);
  EXPECT_EQ(rest_of(runtime, from(names("1")), from(names("2/3"))).size(), 1u);
  EXPECT_THROW(rest_of(runtime, from(names("1")), from(one_shard(server.url("/c.tar")))), error);
}

TEST_F(RemoteRun, IdentifiesTokensByTheQueriesOfTheirUrls) {
  test::web_server server([](auto& request) { return test::file_reply(request, "0123456789"); });
  runtime runtime;
  auto identity_of = [&](const std::string& name) {
    auto file = sync_wait(runtime, open_tokens(name, element_type::u16));
    return token_windows(file, {.length = 2}).identity();
  };
  auto of_url = [&](const std::string& query) { return identity_of(server.url("/a.bin" + query)); };
  temp_dir dir;
  EXPECT_EQ(of_url(""), identity_of(dir.write("a.bin", "0123456789")));
  EXPECT_EQ(of_url(signed_by("x")), of_url(""));
  EXPECT_EQ(of_url(signed_by("x") + "&file=a"), of_url("?file=a"));
  EXPECT_NE(of_url("?file=a"), of_url("?file=b"));
  EXPECT_NE(of_url("?file=a"), of_url(""));
}

// Keys of the samples in a shard, by its index.
static std::string keys_in(runtime& where, const std::string& url, const std::string& directory) {
  auto samples = sync_wait(where, index_shards(one_shard(url), {.index_directory = directory}));
  std::string keys;
  for (auto& each : samples.list_all()) keys += each.key().substr(each.key().rfind('/') + 1);
  return keys;
}

TEST_F(RemoteRun, IndexesAShardAgainWhenItsEntityTagChanges) {
  std::string name = "a", tag = "\"v1\"";
  test::web_server server(
      [&](auto& request) { return test::file_reply(request, tar_of({name}), tag); });
  temp_dir dir;
  runtime runtime;
  auto keys = [&] { return keys_in(runtime, server.url("/a.tar"), dir / "indexes"); };
  EXPECT_EQ(keys(), "a");
  auto requests = server.requests();
  name = "b";
  EXPECT_EQ(keys(), "a");  // as long as the server says that it is the same
  EXPECT_EQ(server.requests(), requests + 1);
  tag = "\"v2\"";
  EXPECT_EQ(keys(), "b");
}

TEST_F(RemoteRun, IndexesShardsByTheQueriesOfTheirUrls) {
  test::web_server server([](auto& request) {
    auto name = request.target.substr(request.target.find("file=") + 5, 1);
    return test::file_reply(request, tar_of({name}), "\"same\"");
  });
  temp_dir dir;
  runtime runtime;
  for (auto* name : {"a", "b", "a"})
    EXPECT_EQ(keys_in(runtime, server.url("/get?file=" + std::string(name)), dir / "indexes"),
              name);
  auto requests = server.requests();
  auto again = server.url("/get?file=a&" + signed_by("x").substr(1));
  EXPECT_EQ(keys_in(runtime, again, dir / "indexes"), "a");
  EXPECT_EQ(server.requests(), requests + 1);
}

static std::string refusal(const std::function<void()>& what) {
  try {
    what();
  } catch (const error& failure) {
    return failure.what();
  }
  return "none";
}

TEST_F(RemoteRun, RefusesShardsAndKeysWithoutSecrets) {
  const std::map<std::string, std::string> files{
      {"twice.tar", tar_of({"a", "b", "a"})},
      {"field.tar", test::tar_file("a.txt", "1") + tar_of({"a"})},
      {"label.tar", test::tar_file("a.cls", "x") + test::tar_end()}};
  test::web_server server([&](auto& request) { return reply_with(files, request); });
  runtime runtime;
  auto index = [&](const std::vector<std::string>& names) {
    return sync_wait(runtime, index_shards(shards(names), {.read = {.label = "cls"}}));
  };
  auto url = [&](const std::string& name) { return server.url(name + signature); };
  auto labels = index({url("/label.tar")});
  const std::vector<std::pair<std::string, std::string>> refusals{
      {"is listed twice", refusal([&] { index({url("/label.tar"), url("/label.tar")}); })},
      {"two samples have the key a", refusal([&] { index({url("/twice.tar")}); })},
      {"has such a field already", refusal([&] { index({url("/field.tar")}); })},
      {"no indexed shard", refusal([&] { (void)labels.identity_of(sample(url("/a.tar"))); })},
      {"is no integer from 0 on",
       refusal([&] { (void)sync_wait(runtime, labels.read()(labels.list_all()[0])); })}};
  for (auto& [why, text] : refusals) {
    EXPECT_THAT(text, HasSubstr(why));
    EXPECT_THAT(text, HasSubstr(".tar?X-Amz-Credential=..."));
    EXPECT_THAT(text, Not(HasSubstr("SECRET")));
  }
}

TEST_F(RemoteRun, RefusesWhatADatasetHasNotWithoutSecrets) {
  auto all = test::remote_files();
  auto& format = *std::ranges::find(all, "mds", &remote_file::name);
  test::web_server server([&](auto& request) { return reply_with(format.files, request); });
  runtime runtime;
  auto data = sync_wait(runtime, open_mds(server.url("/d" + signature)));
  auto other = sample(server.url("/x" + signature)).with_field(field("shard", 0));
  auto read_shard = [&](const sample& shard, mds_options limits) {
    (void)sync_wait(runtime, test::collect(read_mds_shard(data, limits)(shard)));
  };
  const std::vector<std::pair<std::string, std::string>> refusals{
      {"there is no sample 9", refusal([&] { (void)sync_wait(runtime, data(9)); })},
      {"it is not listed in", refusal([&] { read_shard(other, {}); })},
      {"max_bytes is 5", refusal([&] { read_shard(data.shards()[0], {.max_bytes = 5}); })}};
  for (auto& [why, text] : refusals) {
    EXPECT_THAT(text, HasSubstr(why));
    EXPECT_THAT(text, HasSubstr("X-Amz-Signature=..."));
    EXPECT_THAT(text, Not(HasSubstr("SECRET")));
  }
}

}  // namespace lade::io
