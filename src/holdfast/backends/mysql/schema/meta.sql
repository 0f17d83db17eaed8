INSERT IGNORE INTO holdfast_meta (word, value) VALUES
    ('version', '1'),
    ('cluster', LEFT(SHA2(CONCAT(UUID(), RAND()), 256), 12));
