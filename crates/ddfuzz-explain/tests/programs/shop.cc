// Keeps the heaviest item; a word that begins with an x makes it forget the item.
#include <string>
#include <vector>
#include <memory>
#include <iostream>
#include <map>
struct Item { std::string name; int weight; };
struct Shop { std::vector<Item> items; std::unique_ptr<Item> best; int limit = 3; };
static void add(Shop &shop, const std::string &word) {
    Item item{word, (int)word.size()};
    shop.items.push_back(item);
    if (word[0] == 'x')
        shop.best.reset();
    else if (!shop.best || item.weight > shop.best->weight)
        shop.best = std::make_unique<Item>(item);
}
static int report(const Shop &shop) {
    int total = 0;
    for (const Item &item : shop.items)
        total += item.weight;
    return total + shop.best->weight;
}
int main() {
    Shop shop;
    std::string word;
    while (std::cin >> word)
        add(shop, word);
    std::cout << report(shop) << "\n";
}
