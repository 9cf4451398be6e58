#pragma once
#include <string>

namespace jobs {

/// A job.
template <typename T>
class Job : public Base {
public:
    explicit Job(std::string name) : name_(std::move(name)) { count_ += 1; }
    virtual ~Job() = default;

    /// Runs it.
    ///
    /// It may take long.
    virtual T run(int flags) const = 0;

    const std::string &name() const noexcept { return name_; }

private:
    std::string name_;
    static inline int count_ = 0;
};

enum class State : int { Waiting, Done };

using Names = std::vector<std::string>;

template <typename T>
T twice(T a)
{
    return a + a;
}

template <typename T>
bool operator==(const Job<T> &a, const Job<T> &b) { return a.name() == b.name(); }

} // namespace jobs
