// A list of listeners that grows while one of them is called: each line is the name of a listener,
// which is called at once; one with the name "more" adds as many others as its number says.
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

struct Text {
    char of[16];
};

struct Listener {
    std::unique_ptr<Text> name;
    int adds;
    int calls;
};

struct List {
    std::vector<Listener> all;

    void add(const char *name, int adds)
    {
        std::unique_ptr<Text> text(new Text());
        std::strncpy(text->of, name, sizeof text->of - 1);
        all.push_back(Listener{std::move(text), adds, 0});
    }

    void call()
    {
        Listener &last = all.back();
        for (int i = 0; i < last.adds; i++)
            add("added", 0);
        std::printf("%c\n", last.name->of[0]);
    }
};

int main()
{
    List list;
    char line[64], name[16];
    int adds;

    list.all.reserve(4);
    while (std::fgets(line, sizeof line, stdin)) {
        if (std::sscanf(line, "%15s %d", name, &adds) != 2)
            continue;
        list.add(name, adds);
        list.call();
    }
    return 0;
}
