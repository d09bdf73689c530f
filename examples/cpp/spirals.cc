/*
 * A network learns which of two spirals a point belongs to, in C++20: a layer of one's own, options
 * by name, a dataset, exceptions, a checkpoint of the best epoch.
 */
#include <eddy.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/* y = x + a sin(kernel x): a residual block with a learned amplitude for each unit. */
class wave : public eddy::custom_layer
{
  public:
    static const char *kind() { return "wave"; }

    void build(const eddy::layer_call &call) override
    {
        const int64_t units = call.input().dim(-1);
        kernel_ = add_weight("kernel", {units, units});
        amplitude_ =
            add_weight("amplitude", {units}, {.initializer = eddy::initializers::constant(0.1)});
    }

    eddy::tensor forward(const eddy::layer_call &call) override
    {
        const eddy::tensor x = call.input();
        return x + amplitude_ * eddy::sin(eddy::matmul(x, kernel_));
    }

  private:
    eddy::variable kernel_, amplitude_;
};

/* Points [count, 2] on two spirals with some noise, and the spiral's number of each. */
static eddy::dataset spirals(int count, int64_t seed)
{
    std::srand(static_cast<unsigned>(seed));
    std::vector<float> points;
    std::vector<int32_t> labels;
    for (int i = 0; i < count; i++) {
        const double t = 0.5 + 5 * std::sqrt(std::rand() / (RAND_MAX + 1.0)),
                     turn = t + (i % 2) * 3.14159265;
        points.push_back(static_cast<float>(t / 3 * std::cos(turn)));
        points.push_back(static_cast<float>(t / 3 * std::sin(turn)));
        labels.push_back(i % 2);
    }
    return eddy::dataset::from_tensors(eddy::constant(points, {count, 2}), eddy::constant(labels),
                                       {.batch = 64, .shuffle = true, .seed = seed});
}

static double accuracy(const eddy::layer &model, const eddy::dataset &data)
{
    const eddy::metric right = eddy::metrics::sparse_categorical_accuracy();
    for (const auto &[x, y] : data) right.compare(y, model(x));
    return right.result();
}

static void train(const std::string &folder)
{
    const eddy::dataset data = spirals(1024, 1), other = spirals(512, 2);
    const eddy::layer model = eddy::layers::sequential(
        {eddy::layers::dense(32, {.activation = "tanh"}), eddy::make_layer<wave>(),
         eddy::make_layer<wave>(), eddy::layers::dense(2)},
        "spirals");
    const eddy::optimizer adam = eddy::optimizers::adam({.learning_rate = 0.01});
    const eddy::checkpoint objects({{"model", model}, {"optimizer", adam}});
    const eddy::checkpoint_manager best(objects, folder,
                                        {.max_to_keep = 1, .best = ED_BEST_HIGHEST});

    for (int epoch = 1; epoch <= 20; epoch++) {
        const eddy::metric loss = eddy::metrics::mean();
        for (const auto &[x, y] : data) {
            const eddy::tape tape;
            const eddy::tensor losses = eddy::sparse_softmax_cross_entropy(y, model(x));
            adam.minimize(tape, eddy::reduce_mean(losses), model);
            loss.update(losses);
        }
        const double share = accuracy(model, other);
        best.save({.metric = share});
        if (epoch % 5 == 0)
            std::printf("epoch %2d: loss %.3f, accuracy %.1f %%\n", epoch, loss.result(),
                        100 * share);
    }
    objects.restore(best.best());
    std::printf("best accuracy: %.1f %%\n", 100 * accuracy(model, other));
}

int main(int n, char **words)
{
    eddy::throwing errors;
    eddy::set_seed(1);
    try {
        train(n > 1 ? words[1] : "save/spirals");
    } catch (const eddy::error &e) {
        std::fprintf(stderr, "%s:%d: %s\n", e.file(), e.line(), e.what());
        return 1;
    }
}
