/* Objects of derived classes behind pointers to their base classes. */
#include <stdio.h>

struct Shape {
    int number = 1;
    virtual int area() { return 0; }
};

struct Named {
    int length = 2;
    virtual int letters() { return length; }
};

namespace round {
struct Circle : Shape {
    int radius = 3;
    int area() override { return 3 * radius * radius; }
};
}

struct Square : Shape, Named {
    int side = 4;
    int area() override { return side * side; }
};

namespace {
struct Hidden : Shape {
    int inside = 5;
    int area() override { return inside; }
};
}

template <int count> struct Box : Shape {
    int cells[count] = {6, 7};
    int area() override { return cells[1]; }
};

struct Virtual : virtual Shape {
    int extra = 8;
    int area() override { return extra; }
};

Shape *circle, *square, *hidden, *box, *plain, *unknown;
Named *named;

int main()
{
    circle = new round::Circle;
    square = new Square;
    named = new Square;
    hidden = new Hidden;
    box = new Box<2>;
    plain = new Shape;
    unknown = new Virtual;
    int sum = circle->area() + square->area() + named->letters();
    sum += hidden->area() + box->area() + plain->area() + unknown->area();
    return sum == 0;
}
