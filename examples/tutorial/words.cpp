// A stage that is a function object: the words of a text become their numbers in a vocabulary.

#include <lade/lade.hpp>

#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

class tokenize {
 public:
  explicit tokenize(std::map<std::string, int> vocabulary) : numbers_(std::move(vocabulary)) {}

  std::vector<int> operator()(const std::string& text) const {
    std::vector<int> tokens;
    std::istringstream words(text);
    for (std::string word; words >> word;) tokens.push_back(numbers_.at(word));
    return tokens;
  }

 private:
  std::map<std::string, int> numbers_;
};

int main() {
  lade::runtime runtime;
  std::vector<std::string> texts{"to be", "or not to be", "that is", "not that"};
  tokenize by_words({{"to", 0}, {"be", 1}, {"or", 2}, {"not", 3}, {"that", 4}, {"is", 5}});
  auto run = runtime.run(lade::from(texts) | lade::map(by_words));
  for (auto& tokens : run) {
    std::cout << "tokens:";
    for (auto token : tokens) std::cout << " " << token;
    std::cout << "\n";
  }
  for (auto& stage : run.statistics().stages)
    std::cout << stage.name << ": " << stage.in << " in, " << stage.out << " out\n";
}
