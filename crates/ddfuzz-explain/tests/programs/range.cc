// Records in a vector, by rows: the stride is that of the other side.
#include <cstddef>
#include <cstdio>
#include <vector>

struct table {
    std::size_t rows, columns;
    std::vector<int> cells;

    std::size_t locate(std::size_t row, std::size_t column) const
    {
        return row * rows + column;
    }

    void put(std::size_t row, std::size_t column, int value)
    {
        cells.at(locate(row, column)) = value;
    }
};

int main()
{
    unsigned row, column;
    if (std::scanf("%u %u", &row, &column) != 2)
        return 1;
    table it{4, 3, std::vector<int>(12)};
    it.put(row, column, 7);
    std::printf("%d\n", it.cells[0]);
    return 0;
}
