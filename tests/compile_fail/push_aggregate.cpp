// error: add a constructor
#include <lade/channel.hpp>
#include <lade/task.hpp>

#include <string>

struct item {
  std::string name;
};

lade::task<> push(lade::channel<item>& to) { co_await to.push(item{"name"}); }
