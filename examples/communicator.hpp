// The exchange between the processes of a training, by MPI.

#pragma once

#include <mpi.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

// All ranks that mpirun or srun has started. Every call waits for the same call on the other ranks.
// Thread: the one that called MPI_Init_thread. An error of MPI ends all ranks.
class communicator {
 public:
  communicator() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm machine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &local_rank_);
    MPI_Comm_free(&machine);
  }

  unsigned rank() const noexcept { return static_cast<unsigned>(rank_); }
  unsigned size() const noexcept { return static_cast<unsigned>(size_); }

  // Among the ranks of this machine, from 0.
  int local_rank() const noexcept { return local_rank_; }

  // Whether it is true on all ranks.
  bool all(bool here) const {
    int number = here;
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return number != 0;
  }

  // Replaces the numbers by their sums over all ranks.
  void sum(std::span<double> numbers) const {
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE,
                  MPI_SUM, MPI_COMM_WORLD);
  }

  // Returns the texts of all ranks on rank 0, by rank, and nothing on the others.
  std::vector<std::string> gather(const std::string& text) const {
    auto size = static_cast<int>(text.size());
    std::vector<int> sizes(this->size());
    MPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::vector<int> begins(this->size());
    std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0);
    std::string all(static_cast<std::size_t>(begins.back() + sizes.back()), '\0');
    MPI_Gatherv(text.data(), size, MPI_CHAR, all.data(), sizes.data(), begins.data(), MPI_CHAR, 0,
                MPI_COMM_WORLD);
    std::vector<std::string> texts;
    for (std::size_t i = 0; rank_ == 0 && i < sizes.size(); ++i)
      texts.emplace_back(all, static_cast<std::size_t>(begins[i]),
                         static_cast<std::size_t>(sizes[i]));
    return texts;
  }

  // Returns the text of rank 0 on all ranks.
  std::string broadcast(std::string text) const {
    auto size = static_cast<int>(text.size());
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    text.resize(static_cast<std::size_t>(size));
    MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
    return text;
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
};
