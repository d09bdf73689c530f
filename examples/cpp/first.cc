/* The program of README.md in C++17: a line is fitted through points. */
#include <eddy.hpp>
#include <iostream>

int main()
{
    eddy::throwing errors; /* failed calls throw eddy::error */
    eddy::set_seed(1);
    const eddy::tensor x = eddy::random_normal({256, 3});
    const eddy::tensor w = eddy::constant<float>({1, -2, 3}, {3, 1});
    const eddy::tensor y = eddy::matmul(x, w) + 4; /* what the model has to find out */

    const eddy::layer model = eddy::layers::dense(1);
    eddy::optimizers::adam_options options;
    options.learning_rate = 0.1;
    const eddy::optimizer adam = eddy::optimizers::adam(options);
    for (int step = 1; step <= 300; step++) {
        const eddy::tape tape;
        const eddy::tensor loss = eddy::reduce_mean(eddy::square(model(x) - y));
        adam.minimize(tape, loss, model);
        if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss.item() << "\n";
    }
    for (const eddy::tensor &v : model.trainable_variables())
        std::cout << v << "\n"; /* 1, -2, 3; 4 */
}
