#include "../../../io/http/credential_answers.hpp"
#include "../../../io/http/credential_cache.hpp"
#include "../../../io/http/profile_file.hpp"
#include "../../../io/http/s3_state.hpp"

#include <lade/buffer_pool.hpp>
#include <lade/error.hpp>
#include <lade/from.hpp>
#include <lade/io/http/error.hpp>
#include <lade/io/http/s3.hpp>
#include <lade/io/http/s3_credentials.hpp>
#include <lade/map.hpp>
#include <lade/run.hpp>
#include <lade/runtime.hpp>
#include <lade/scope.hpp>
#include <lade/sleep.hpp>
#include <lade/sync_wait.hpp>
#include <lade/this_context.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "../../support/environment.hpp"
#include "../../support/python_server.hpp"
#include "../../support/temp_dir.hpp"
#include "../../support/web_server.hpp"

namespace lade::io::http::s3_credentials_test {

using namespace std::chrono_literals;
using test::aws_environment;
using test::web_reply;
using test::web_request;
using test::web_server;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;
using testing_support::temp_dir;

static const std::string far_future = "2100-01-02T03:04:05Z";

static std::string json_keys(const std::string& id) {
  return R"({"Code":"Success","AccessKeyId":")" + id +
         R"(","SecretAccessKey":"s3cr3t","Token":"t0k3n","Expiration":")" + far_future + "\"}";
}

static s3_credentials get(const s3_credentials_function& from) {
  runtime runtime;
  return sync_wait(runtime, from());
}

// What a source throws; it shows no secret.
static std::string failure_of(const s3_credentials_function& from) {
  try {
    (void)get(from);
  } catch (const error& failure) {
    std::string what = failure.what();
    EXPECT_THAT(what, AllOf(Not(HasSubstr("s3cr3t")), Not(HasSubstr("t0k3n"))));
    return what;
  }
  return "none";
}

static s3_credentials::time utc(int year, unsigned month, unsigned day,
                                std::chrono::seconds of_day) {
  return std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                               static_cast<int>(day)) +
         of_day;
}

TEST(S3Credentials, ExpireAtTheTimeThatAnswersSay) {
  EXPECT_EQ(parse_expiration("2026-01-31T23:59:58Z"), utc(2026, 1, 31, 23h + 59min + 58s));
  EXPECT_EQ(parse_expiration("2024-02-29T00:00:00.123456Z"), utc(2024, 2, 29, 0s));
  EXPECT_EQ(parse_expiration("2026-01-01T00:30:00+01:00"), utc(2025, 12, 31, 23h + 30min));
  EXPECT_EQ(parse_expiration("2026-01-01T00:30:00-0130"), utc(2026, 1, 1, 2h));
  EXPECT_EQ(parse_expiration("9999-12-31T23:59:59Z"), s3_credentials::time::max());
  for (auto* wrong : {"", "2026", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z",
                      "2026-01-01 00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00",
                      "2026-01-01T00:00:00Zx", "2026-01-01T00:00:00.Z", "2026-01-01T0:00:00Z"})
    EXPECT_EQ(parse_expiration(wrong), std::nullopt) << wrong;
}

TEST(S3Credentials, InAnswersThatAreDamagedAreRefusedWithoutShowingThem) {
  auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)parse_credentials_json(text, "get credentials");
    } catch (const error& refused) {
      return refused.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal(R"({"AccessKeyId":"id","SecretAccessKey":"s3cr3t")"),
            "get credentials: the answer is no JSON object");
  EXPECT_EQ(refusal(R"(["s3cr3t"])"), "get credentials: the answer is no JSON object");
  EXPECT_EQ(refusal(R"({"AccessKeyId":"id","x":)" + std::string(100'000, '[')),
            "get credentials: the answer is no JSON object");
  EXPECT_EQ(refusal(R"({"AccessKeyId":"id"})"), "get credentials: the answer has no keys");
  EXPECT_EQ(refusal(R"({"AccessKeyId":"a","SecretAccessKey":"b","Expiration":"soon"})"),
            "get credentials: an expiration that is no time");
  EXPECT_EQ(refusal(R"({"Code":"AssumeRoleUnauthorizedAccess","Message":"no"})"),
            "get credentials: the service says AssumeRoleUnauthorizedAccess");
  EXPECT_EQ(parse_credentials_json(R"({"AccessKeyId":"a","SecretAccessKey":"b","x":[1]})", "get")
                .expires(),
            s3_credentials::time::max());
  EXPECT_THAT([] { (void)parse_credentials_xml("<a/>", "get credentials"); },
              ThrowsMessage<error>("get credentials: the answer has no Credentials"));
  EXPECT_THAT([] { (void)parse_credentials_xml("<Credentials><AccessKeyId>", "get credentials"); },
              ThrowsMessage<error>("get credentials: no end of <Credentials>"));
}

TEST(S3Credentials, ComeFromTheEnvironmentFirst) {
  temp_dir home;
  home.write(".aws/credentials",
             "[default]\naws_access_key_id = file\naws_secret_access_key = s3cr3t\n");
  std::map<std::string, std::string> variables{{"HOME", home.path().string()},
                                               {"AWS_ACCESS_KEY_ID", "id"},
                                               {"AWS_SECRET_ACCESS_KEY", "secret"},
                                               {"AWS_SESSION_TOKEN", "token"}};
  {
    aws_environment environment(variables);
    auto keys = get(s3_default_credentials());
    EXPECT_EQ(keys.access_key() + keys.secret_key() + keys.session_token(), "idsecrettoken");
    EXPECT_EQ(get(s3_environment_credentials()).access_key(), "id");
  }
  variables.erase("AWS_ACCESS_KEY_ID");
  {
    aws_environment environment(variables);
    EXPECT_EQ(failure_of(s3_default_credentials()),
              "find credentials in the environment: AWS_SECRET_ACCESS_KEY is set, and "
              "AWS_ACCESS_KEY_ID is not");
  }
  variables.erase("AWS_SECRET_ACCESS_KEY");
  aws_environment environment(variables);
  EXPECT_EQ(get(s3_default_credentials()).access_key(), "file");
  EXPECT_EQ(failure_of(s3_environment_credentials()),
            "find credentials: AWS_ACCESS_KEY_ID is not set");
}

TEST(S3Credentials, MissingCredentialsAreAnErrorThatListsAllPlaces) {
  temp_dir home;
  aws_environment environment(
      {{"HOME", home.path().string()}, {"AWS_EC2_METADATA_DISABLED", "true"}});
  EXPECT_EQ(
      failure_of(s3_default_credentials()),
      "find credentials: no credentials were found: looked in the environment "
      "(AWS_ACCESS_KEY_ID is not set); web identity (AWS_WEB_IDENTITY_TOKEN_FILE is not set); "
      "profile files (there is no profile default in " +
          home / ".aws/credentials and " + home / ".aws/config" +
          "); container metadata (neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor "
          "AWS_CONTAINER_CREDENTIALS_FULL_URI is set); instance metadata "
          "(AWS_EC2_METADATA_DISABLED is set)");
}

TEST(S3Credentials, ComeFromProfiles) {
  temp_dir home;
  home.write(".aws/credentials",
             "# a comment\n[default]\naws_access_key_id = a\naws_secret_access_key = b\n\n"
             "[ other ]\r\naws_access_key_id=c ; comment\r\naws_secret_access_key=d\r\n"
             "aws_session_token = e==\r\n");
  home.write(".aws/config",
             "[profile other]\naws_access_key_id = no\nregion = eu-west-1\n"
             "[profile half]\naws_access_key_id = s3cr3t\n"
             "[profile role]\nrole_arn = arn\nsource_profile = default\n[profile empty]\n");
  aws_environment environment({{"HOME", home.path().string()}, {"AWS_PROFILE", "other"}});
  auto keys = get(s3_default_credentials());
  EXPECT_EQ(keys.access_key() + keys.secret_key() + keys.session_token(), "cde==");
  EXPECT_EQ(get(s3_profile_credentials("default")).access_key(), "a");
  EXPECT_EQ(failure_of(s3_profile_credentials("half")),
            "get credentials of profile half: it has no aws_secret_access_key");
  EXPECT_EQ(failure_of(s3_profile_credentials("role")),
            "get credentials of profile role: it has role_arn; only profiles with "
            "aws_access_key_id are supported");
  EXPECT_EQ(failure_of(s3_profile_credentials("empty")),
            "find credentials: profile empty has no aws_access_key_id");
  EXPECT_THAT(failure_of(s3_profile_credentials("absent")),
              HasSubstr("load profile absent: there is no such profile in "));
}

TEST(S3Credentials, ProfilesMayBeInOtherFiles) {
  temp_dir home;
  auto keys = home.write("keys", "[default]\naws_access_key_id=a\naws_secret_access_key=b\n");
  aws_environment environment({{"AWS_SHARED_CREDENTIALS_FILE", keys},
                               {"AWS_CONFIG_FILE", home / "absent"},
                               {"HOME", home / "nowhere"}});
  EXPECT_EQ(get(s3_default_credentials()).access_key(), "a");
}

// AWS_SHARED_CREDENTIALS_FILE=<(decrypt credentials) in a shell.
TEST(S3Credentials, ProfilesMayComeFromAPipe) {
  temp_dir home;
  auto pipe = home / "keys";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  aws_environment environment({{"AWS_SHARED_CREDENTIALS_FILE", pipe},
                               {"AWS_CONFIG_FILE", home / "absent"},
                               {"HOME", home / "nowhere"}});
  std::jthread writer(
      [&] { std::ofstream(pipe) << "[default]\naws_access_key_id=a\naws_secret_access_key=b\n"; });
  EXPECT_EQ(get(s3_default_credentials()).access_key(), "a");
}

TEST(S3Credentials, AFileOfProfilesThatIsTooLongIsRefused) {
  temp_dir home;
  auto keys = home.write("keys", std::string((1 << 20) + 1, '#'));
  aws_environment environment({{"AWS_SHARED_CREDENTIALS_FILE", keys},
                               {"AWS_CONFIG_FILE", home / "absent"},
                               {"HOME", home / "nowhere"}});
  EXPECT_EQ(failure_of(s3_default_credentials()), "read " + keys + ": it has more than a MiB");
}

TEST(S3Credentials, ProfileFilesAreReadAsOtherProgramsReadThem) {
  auto sections = parse_profile_file(
      "\xef\xbb\xbf[profile  \"my own\"] # comment\nregion = a\nregion = b\nservices = x\n"
      "[services x]\ns3 =\n  endpoint_url = http://host\n  # comment\nec2 =\n\tregion = c\n",
      "config");
  EXPECT_EQ(sections["profile my own"]["region"], "b");
  EXPECT_EQ(sections["services x"]["s3.endpoint_url"], "http://host");
  EXPECT_EQ(sections["services x"]["ec2.region"], "c");
  auto indented = parse_profile_file("[a]\n  b = 1\n  c =\n    d = 2\n  e = 3\n", "config");
  EXPECT_EQ(indented["a"], (profile_section{{"b", "1"}, {"c", ""}, {"c.d", "2"}, {"e", "3"}}));
  auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_THAT([&] { (void)parse_profile_file(text, "config"); },
                ThrowsMessage<error>("read config: " + why));
  };
  refused("a = b", "line 1: a property outside of a section");
  refused("[a]\n\nsecret", "line 3: neither [section] nor name = value");
  refused("[a]\n= secret", "line 2: neither [section] nor name = value");
  refused("[a", "line 1: no end of a section's name");
  refused("[ ]", "line 1: a section without a name");
}

TEST(S3Credentials, OfTheEnvironmentWithALineBreakAreRefusedByTheirVariable) {
  for (auto* variable : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) {
    std::map<std::string, std::string> variables{{"AWS_ACCESS_KEY_ID", "id"},
                                                 {"AWS_SECRET_ACCESS_KEY", "s3cr3t"}};
    variables[variable] += "\n";
    aws_environment environment(variables);
    EXPECT_EQ(failure_of(s3_default_credentials()),
              std::string("find credentials in the environment: ") + variable +
                  " has a blank or a line break in it");
  }
}

static std::string failure_to_read() {
  runtime runtime;
  try {
    (void)sync_wait(runtime, s3_store({.anonymous = true}).read("s3://bucket/key"));
  } catch (const error& failure) {
    return failure.what();
  }
  return "none";
}

TEST(S3Place, AnInvalidEndpointIsNamedWithItsOrigin) {
  temp_dir home;
  auto config = home.write("config", "[default]\nendpoint_url = there:9000\n");
  const std::map<std::string, std::string> nowhere{{"AWS_CONFIG_FILE", home / "absent"},
                                                   {"AWS_SHARED_CREDENTIALS_FILE", home / "absent"},
                                                   {"HOME", home / "nowhere"}};
  auto with = [&](const char* name, const std::string& value) {
    auto variables = nowhere;
    variables[name] = value;
    return variables;
  };
  auto expected = [](const std::string& from, const std::string& url) {
    return HasSubstr("make an S3 store: " + from + ": open " + url +
                     ": not a URL of http or https");
  };
  for (auto* name : {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"}) {
    aws_environment environment(with(name, "localhost:9000"));
    EXPECT_THAT(failure_to_read(), expected(name, "localhost:9000"));
  }
  {
    aws_environment environment(with("AWS_CONFIG_FILE", config));
    EXPECT_THAT(failure_to_read(), expected("endpoint_url of profile default", "there:9000"));
  }
  EXPECT_THAT([] { s3_store({.endpoint = "here"}); },
              ThrowsMessage<error>(expected("endpoint", "here")));
}

static const std::string sts_answer =
    "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
    "<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>web</AccessKeyId>"
    "<SecretAccessKey>s3cr3t</SecretAccessKey><SessionToken>t0k3n&amp;</SessionToken>"
    "<Expiration>2100-01-02T03:04:05Z</Expiration></Credentials>"
    "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";

TEST(S3Credentials, ComeFromAWebIdentity) {
  temp_dir home;
  auto token = home.write("token", "identity+t0k3n\n");
  web_server server([](auto&) { return web_reply{.body = sts_answer}; });
  aws_environment environment({{"HOME", home.path().string()},
                               {"AWS_WEB_IDENTITY_TOKEN_FILE", token},
                               {"AWS_ROLE_ARN", "arn:aws:iam::1:role/a"},
                               {"AWS_ROLE_SESSION_NAME", "trainer 7"},
                               {"AWS_ENDPOINT_URL_STS", server.url()}});
  auto keys = get(s3_default_credentials());
  EXPECT_EQ(keys.access_key() + keys.secret_key() + keys.session_token(), "webs3cr3tt0k3n&");
  EXPECT_EQ(keys.expires(), utc(2100, 1, 2, 3h + 4min + 5s));
  EXPECT_EQ(server.seen().at(0).body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3A"
            "role%2Fa&RoleSessionName=trainer%207&WebIdentityToken=identity%2Bt0k3n");
  EXPECT_EQ(server.seen().at(0).headers["content-type"], "application/x-www-form-urlencoded");
}

TEST(S3Credentials, OfAWebIdentityThatIsRefusedAreAnError) {
  temp_dir home;
  auto token = home.write("token", "t0k3n");
  web_server server([](auto&) {
    return web_reply{.status = 400,
                     .body =
                         "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>No "
                         "provider</Message></Error></ErrorResponse>"};
  });
  std::map<std::string, std::string> variables{{"HOME", home.path().string()},
                                               {"AWS_WEB_IDENTITY_TOKEN_FILE", token},
                                               {"AWS_ROLE_ARN", "arn"},
                                               {"AWS_ENDPOINT_URL_STS", server.url()}};
  {
    aws_environment environment(variables);
    EXPECT_THAT(failure_of(s3_default_credentials()),
                HasSubstr("400 Bad Request: InvalidIdentityToken, No provider"));
  }
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = home / "absent";
  aws_environment environment(variables);
  EXPECT_EQ(failure_of(s3_web_identity_credentials()),
            "read " + home / "absent" + ": there is no such file");
}

TEST(S3Credentials, ComeFromTheContainer) {
  temp_dir home;
  auto token = home.write("token", "from a file\n");
  web_server server([](const web_request& request) {
    if (request.target != "/creds?id=7") return web_reply{.status = 404};
    return web_reply{.body = json_keys(request.headers.at("authorization"))};
  });
  std::map<std::string, std::string> variables{
      {"HOME", home.path().string()},
      {"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("/creds?id=7")},
      {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "given"}};
  {
    aws_environment environment(variables);
    auto keys = get(s3_default_credentials());
    EXPECT_EQ(keys.access_key(), "given");
    EXPECT_EQ(keys.session_token(), "t0k3n");
  }
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = token;
  aws_environment environment(variables);
  EXPECT_EQ(get(s3_container_credentials()).access_key(), "from a file");
}

TEST(S3Credentials, OfAContainerAreAskedForOverHttpAtKnownAddressesOnly) {
  temp_dir home;
  for (auto* url : {"http://example.com/a", "http://127.example.com/a", "http://10.0.0.1/a"}) {
    aws_environment environment({{"HOME", home.path().string()},
                                 {"AWS_CONTAINER_CREDENTIALS_FULL_URI", url},
                                 {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t0k3n"}});
    EXPECT_EQ(failure_of(s3_default_credentials()),
              "get credentials from " + std::string(url) +
                  ": over http, only loopback and metadata addresses may be asked");
  }
  aws_environment environment({{"HOME", home.path().string()},
                               {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/a"},
                               {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t0k3n\nX: y"}});
  EXPECT_THAT(failure_of(s3_container_credentials()),
              HasSubstr("a line break or a zero byte in it"));
}

// The metadata service of an instance, version 2.
class instance_service {
 public:
  std::string url() const { return server_.url(""); }
  std::vector<web_request> seen() const { return server_.seen(); }
  void has_role(bool yes) { has_role_ = yes; }

 private:
  web_reply answer(const web_request& request) const {
    if (request.method == "PUT" && request.target == "/latest/api/token")
      return {.body = "session"};
    auto token = request.headers.find("x-aws-ec2-metadata-token");
    if (token == request.headers.end() || token->second != "session") return {.status = 401};
    const std::string roles = "/latest/meta-data/iam/security-credentials/";
    if (request.target == roles && has_role_) return {.body = "my role\n"};
    if (request.target == roles + "my%20role") return {.body = json_keys("instance")};
    return {.status = 404};
  }

  std::atomic<bool> has_role_ = true;
  web_server server_{[this](auto& request) { return answer(request); }};
};

TEST(S3Credentials, ComeFromTheInstance) {
  temp_dir home;
  instance_service service;
  aws_environment environment(
      {{"HOME", home.path().string()}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", service.url() + "/"}});
  auto keys = get(s3_default_credentials());
  EXPECT_EQ(keys.access_key() + keys.secret_key(), "instances3cr3t");
  EXPECT_EQ(keys.expires(), utc(2100, 1, 2, 3h + 4min + 5s));
  EXPECT_EQ(service.seen().at(0).headers["x-aws-ec2-metadata-token-ttl-seconds"], "21600");
  service.has_role(false);
  EXPECT_EQ(failure_of(s3_instance_credentials()), "find credentials: the instance has no role");
}

TEST(S3Credentials, AreNotWaitedForWhereThereIsNoInstance) {
  temp_dir home;
  aws_environment environment({{"HOME", home.path().string()},
                               {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1"}});
  EXPECT_THAT(failure_of(s3_default_credentials()),
              AllOf(HasSubstr("no credentials were found"),
                    HasSubstr("instance metadata (put http://127.0.0.1:1/latest/api/token: ")));
}

// The services as others imitate them.
class Moto : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::python_server>("moto_server.py", "LADE_PACKAGES_PYTHON");
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    if (!server_->serves()) GTEST_SKIP() << "moto is not installed";
  }

  static inline std::unique_ptr<test::python_server> server_;
};

static void expect_to_be_whole(const s3_credentials& keys) {
  EXPECT_FALSE(keys.access_key().empty());
  EXPECT_FALSE(keys.secret_key().empty());
  EXPECT_FALSE(keys.session_token().empty());
  EXPECT_GT(keys.expires(), std::chrono::system_clock::now() + 30min);
  EXPECT_LT(keys.expires(), std::chrono::system_clock::now() + 48h);
}

TEST_F(Moto, ReturnsCredentialsOfAWebIdentity) {
  temp_dir home;
  auto token = home.write("token", "identity");
  aws_environment environment({{"HOME", home.path().string()},
                               {"AWS_WEB_IDENTITY_TOKEN_FILE", token},
                               {"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/trainer"},
                               {"AWS_ENDPOINT_URL_STS", server_->url()}});
  expect_to_be_whole(get(s3_default_credentials()));
}

TEST_F(Moto, ReturnsCredentialsOfAnInstance) {
  temp_dir home;
  aws_environment environment(
      {{"HOME", home.path().string()}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server_->url()}});
  expect_to_be_whole(get(s3_default_credentials()));
}

TEST(S3Credentials, RegionAndEndpointMayComeFromTheProfile) {
  temp_dir home;
  web_server server([](auto& request) { return test::file_reply(request, request.target); });
  home.write(".aws/credentials", "[p]\naws_access_key_id = a\naws_secret_access_key = b\n");
  home.write(".aws/config",
             "[profile p]\nregion = eu-west-9\nservices = here\n[services here]\n"
             "s3 =\n  endpoint_url = " +
                 server.url() + "\n");
  aws_environment environment({{"HOME", home.path().string()}, {"AWS_PROFILE", "p"}});
  runtime runtime;
  s3_store store;
  EXPECT_EQ(sync_wait(runtime, store.read("s3://bucket/key")).text(), "/bucket/key");
  EXPECT_THAT(server.seen().at(0).headers["authorization"],
              AllOf(HasSubstr("Credential=a/"), HasSubstr("/eu-west-9/s3/aws4_request")));
}

// A function for credentials. Members determine when they expire, and whether it fails.
class key_service {
 public:
  s3_credentials_function function() {
    return [this] { return answer(*this); };
  }

  std::atomic<int> calls = 0;
  std::atomic<bool> fails = false;
  std::chrono::nanoseconds lifetime = 1h;
  event* waits_for = nullptr;
  event called_again;  // set by the second call

 private:
  static task<s3_credentials> answer(key_service& self) {
    auto number = ++self.calls;
    if (number == 2) self.called_again.set();
    if (self.waits_for) co_await *self.waits_for;
    if (self.fails) throw error(errc::failed, "ask", "no answer");
    auto expires = std::chrono::system_clock::now() + self.lifetime;
    co_return s3_credentials("id" + std::to_string(number), "secret", {},
                             std::chrono::time_point_cast<s3_credentials::time::duration>(expires));
  }
};

TEST(CredentialCache, KeepsCredentialsUntilTheyAreAboutToExpire) {
  key_service service;
  credential_cache cache(service.function());
  runtime runtime;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id1");
  EXPECT_EQ(service.calls, 1);
  cache.expire(std::chrono::system_clock::now() - 1h);  // an attempt with older ones
  EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id1");
  cache.expire(std::chrono::system_clock::now());
  EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id2");
}

TEST(CredentialCache, UsesOldCredentialsWhileARefreshFails) {
  key_service service;
  service.lifetime = 4min;
  credential_cache cache(service.function());
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id1");
  service.fails = true;
  EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id1");
  cache.expire(std::chrono::system_clock::now());
  EXPECT_THAT([&] { (void)sync_wait(runtime, cache.current()); },
              ThrowsMessage<error>("ask: no answer"));
}

static task<> take(credential_cache& cache, std::vector<std::string>& into, std::mutex& mutex) {
  auto keys = co_await cache.current();
  std::lock_guard lock(mutex);
  into.push_back(keys.access_key());
}

static task<> take_many(credential_cache& cache, std::vector<std::string>& into, event& answered) {
  std::mutex mutex;
  scope children(co_await this_context());
  for (int i = 0; i < 100; ++i) children.start(take(cache, into, mutex));
  co_await sleep(1ms);
  answered.set();
  co_await children.join();
}

TEST(CredentialCache, RequestsOnceForAllWaiters) {
  key_service service;
  event answered;
  service.waits_for = &answered;
  credential_cache cache(service.function());
  runtime runtime({.threads = 4});
  std::vector<std::string> taken;
  sync_wait(runtime, take_many(cache, taken, answered));
  EXPECT_EQ(taken, std::vector<std::string>(100, "id1"));
  EXPECT_EQ(service.calls, 1);
}

TEST(CredentialCache, OneFailureEndsAllWaits) {
  key_service service;
  service.fails = true;
  event answered;
  service.waits_for = &answered;
  credential_cache cache(service.function());
  runtime runtime({.threads = 4});
  std::vector<std::string> taken;
  EXPECT_THAT([&] { sync_wait(runtime, take_many(cache, taken, answered)); },
              ThrowsMessage<error>("ask: no answer"));
  EXPECT_TRUE(taken.empty());
}

static task<std::string> take_beside_one_that_stops(credential_cache& cache, key_service& service,
                                                    event& answered) {
  auto execution = co_await this_context();
  scope stopped(execution);
  scope waiting(execution);
  std::vector<std::string> taken;
  std::mutex mutex;
  stopped.start(take(cache, taken, mutex));
  while (service.calls == 0) co_await sleep(1us);
  waiting.start(take(cache, taken, mutex));
  stopped.stop();
  try {
    co_await stopped.join();
    co_return std::string("it was not stopped");
  } catch (const error& failure) {
    if (failure.code() != errc::stopped) throw;
  }
  answered.set();
  co_await waiting.join();
  co_return taken.at(0);
}

TEST(CredentialCache, AStopEndsTheStoppedRequestOnly) {
  key_service service;
  event answered;
  service.waits_for = &answered;
  credential_cache cache(service.function());
  runtime runtime({.threads = 2});
  EXPECT_EQ(sync_wait(runtime, take_beside_one_that_stops(cache, service, answered)), "id2");
}

static task<std::string> take_without_memory(credential_cache& cache) {
  buffer_pool pool(1 << 20);
  auto all = pool.try_allocate(1 << 20);
  EXPECT_TRUE(all);
  auto execution = co_await this_context();
  execution.memory = &pool;
  auto keys = co_await with_context(execution, cache.current());
  co_return keys.access_key();
}

TEST(CredentialCache, NeedsNoMemoryOfTheRun) {
  temp_dir home;
  instance_service service;
  aws_environment environment(
      {{"HOME", home.path().string()}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", service.url()}});
  credential_cache cache(s3_default_credentials());
  runtime runtime;
  EXPECT_EQ(sync_wait(runtime, take_without_memory(cache)), "instance");
}

// Credentials that are due to be replaced a millisecond after they have come.
static constexpr credential_times often{.margin = 1h, .pause = 1ms};

static task<> stop_when_called_again(credential_cache& cache, key_service& service) {
  scope background(co_await this_context());
  background.start(cache.keep_fresh());
  co_await service.called_again;
  background.stop();
  try {
    co_await background.join();
    ADD_FAILURE() << "it was not stopped";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::stopped);
  }
}

TEST(CredentialCache, IsKeptFreshInTheBackgroundUntilItIsStopped) {
  for (bool fails : {false, true}) {
    key_service service;
    service.lifetime = 1h + 1ms;
    service.fails = fails;
    credential_cache cache(service.function(), often);
    runtime runtime;
    sync_wait(runtime, stop_when_called_again(cache, service));
    EXPECT_GE(service.calls, 2);
  }
}

TEST(S3Credentials, ThatAServerCallsExpiredAreReplacedOnce) {
  std::atomic<int> refused = 0;
  web_server server([&](const web_request& request) {
    if (request.headers.at("authorization").find("Credential=id1/") != std::string::npos) {
      ++refused;
      return web_reply{.status = 400,
                       .body =
                           "<Error><Code>ExpiredToken</Code><Message>The token has "
                           "expired.</Message></Error>"};
    }
    return test::file_reply(request, "content");
  });
  key_service service;
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .region = "a"}, client(), service.function());
  EXPECT_EQ(sync_wait(runtime, store.read("s3://bucket/key")).text(), "content");
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(service.calls, 2);
}

// Refuses the first so many credentials, and has no body to say why.
static web_reply refuse_first(const web_request& request, int refused, std::atomic<int>& refusals) {
  auto& proof = request.headers.at("authorization");
  for (int i = 1; i <= refused; ++i)
    if (proof.find("Credential=id" + std::to_string(i) + "/") != std::string::npos) {
      ++refusals;
      return {.status = 403};
    }
  return test::file_reply(request, "content");
}

TEST(S3Credentials, ARefusedHeadReplacesOldCredentialsOnce) {
  for (int refused : {0, 1, 2}) {
    std::atomic<int> refusals = 0;
    web_server server(
        [&](const web_request& request) { return refuse_first(request, refused, refusals); });
    key_service service;
    service.lifetime = 4min;
    runtime runtime;
    s3_store store({.endpoint = server.url(""), .region = "a"}, client(), service.function());
    if (refused < 2)
      EXPECT_EQ(sync_wait(runtime, store.head("s3://bucket/key")).object_bytes(), 7u);
    else
      EXPECT_THAT([&] { (void)sync_wait(runtime, store.head("s3://bucket/key")); },
                  ThrowsMessage<error>(HasSubstr("403 Forbidden (attempt 2 of 5)")));
    EXPECT_EQ(refusals, refused);
    EXPECT_EQ(service.calls, std::min(refused + 1, 2));
  }
}

TEST(S3Credentials, ARefusedHeadKeepsFreshCredentials) {
  std::atomic<int> refusals = 0;
  web_server server([&](const web_request& request) { return refuse_first(request, 9, refusals); });
  key_service service;
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .region = "a"}, client(), service.function());
  EXPECT_THAT([&] { (void)sync_wait(runtime, store.head("s3://bucket/key")); },
              ThrowsMessage<error>(HasSubstr("403 Forbidden (attempt 1 of 5)")));
  EXPECT_EQ(refusals, 1);
  EXPECT_EQ(service.calls, 1);
}

TEST(CredentialCache, KnowsWhetherARefusalMayBeOfOldCredentials) {
  key_service service;
  credential_cache cache(service.function());
  runtime runtime;
  EXPECT_TRUE(cache.expire_if_old(std::chrono::system_clock::now()));  // there are none
  EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id1");
  EXPECT_FALSE(cache.expire_if_old(std::chrono::system_clock::now()));
  EXPECT_TRUE(cache.expire_if_old(std::chrono::system_clock::now() - 1h));  // replaced since
  EXPECT_EQ(sync_wait(runtime, cache.current()).access_key(), "id1");
}

TEST(S3Credentials, OfAReaderAreThoseOfTheTimeOfEachRead) {
  web_server server([](auto& request) { return test::file_reply(request, "content"); });
  key_service service;
  service.lifetime = -1s;
  runtime runtime;
  s3_store store({.endpoint = server.url(""), .region = "a"}, client(), service.function());
  auto object = sync_wait(runtime, store.open("s3://bucket/key", false));
  EXPECT_EQ(sync_wait(runtime, object->read_at(1, 3)).text(), "ont");
  EXPECT_THAT(server.seen().back().headers["authorization"], HasSubstr("Credential=id2/"));
}

TEST(S3Credentials, ThatExpireLateDelayNoRun) {
  web_server server([](auto& request) { return test::file_reply(request, "content"); });
  key_service service;
  service.lifetime = 1h;
  runtime runtime;
  auto store = std::make_shared<const s3_store>(
      s3_options{.endpoint = server.url(""), .region = "a"}, client(), service.function());
  auto read = [store](int number) { return store->read("s3://bucket/" + std::to_string(number)); };
  auto contents = from(std::vector<int>(50)) | map(read, {.concurrency = 8});
  std::size_t count = 0;
  for (auto& each : runtime.run(contents)) count += each.text() == "content";
  EXPECT_EQ(count, 50u);
  EXPECT_EQ(service.calls, 1);
}

// The one request of the run, and a wait in which there is none.
static task<std::string> read_and_wait(std::shared_ptr<const s3_store::state> store,
                                       key_service& service) {
  auto what = co_await make_s3_request(store, "GET", "s3://bucket/key");
  auto got = co_await store->requests.send(std::move(what));
  co_await service.called_again;
  co_return std::string(got.body().text());
}

TEST(S3Credentials, ThatExpireAreRenewedBesideARunThatSendsNoRequest) {
  web_server server([](auto& request) { return test::file_reply(request, "content"); });
  key_service service;
  service.lifetime = 1h + 1ms;
  runtime runtime;
  auto store = std::make_shared<s3_store::state>(
      s3_options{.endpoint = server.url(""), .region = "a"}, client(), service.function());
  store->credentials = std::make_shared<credential_cache>(service.function(), often);
  auto read = [store, &service](int) { return read_and_wait(store, service); };
  std::vector<std::string> contents;
  for (auto& each : runtime.run(from(std::vector<int>(1)) | map(read))) contents.push_back(each);
  EXPECT_THAT(contents, ElementsAre("content"));
  EXPECT_EQ(server.requests(), 1u);
  EXPECT_GE(service.calls, 2);
}

}  // namespace lade::io::http::s3_credentials_test
